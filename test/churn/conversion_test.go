package churn

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestConverter_ConvertsUnlessItIsBroken(t *testing.T) {
	c := &converter{broken: map[string]bool{}}
	review := []byte(`{"request":{"uid":"1","desiredAPIVersion":"example.com/v1beta1","objects":[{"apiVersion":"example.com/v1","spec":{"serial":"7"}}]}}`)
	for _, broken := range []bool{false, true, false} {
		c.setBroken("t1", broken)
		for typ, fails := range map[string]bool{"t1": broken, "t2": false} {
			w := httptest.NewRecorder()
			c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+typ, bytes.NewReader(review)))
			if (w.Code != http.StatusOK) != fails {
				t.Errorf("%s, broken %v: status %d", typ, broken, w.Code)
			}
			if fails {
				continue
			}
			var answer struct {
				Response struct {
					UID              string           `json:"uid"`
					ConvertedObjects []map[string]any `json:"convertedObjects"`
				} `json:"response"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response.UID != "1" || len(answer.Response.ConvertedObjects) != 1 {
				t.Fatalf("%v: %s", err, w.Body)
			}
			if obj := answer.Response.ConvertedObjects[0]; obj["apiVersion"] != "example.com/v1beta1" || obj["spec"] == nil {
				t.Errorf("converted to %v", obj)
			}
		}
	}
}

func TestWorld_OnlyTheStorageVersionNeedsNoConversion(t *testing.T) {
	w := newWorld("example.com")
	w.defined("t1", Incarnation{UID: "one", Served: allVersions, Webhook: true})
	w.defined("t2", Incarnation{UID: "two", Served: allVersions})
	for _, fails := range []bool{true, false} {
		for _, typ := range []string{"t1", "t2", "t3"} {
			w.setConversionFails(typ, fails)
			if w.ConversionFails(typ, "v1") || w.ConversionFails(typ, "v1beta1") != (fails && typ == "t1") {
				t.Errorf("%s, fails %v: v1 %v, v1beta1 %v", typ, fails, w.ConversionFails(typ, "v1"), w.ConversionFails(typ, "v1beta1"))
			}
		}
	}
}
