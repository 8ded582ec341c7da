package faultproxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestOnEffect_CountsTheRequestsThatAFaultChanges(t *testing.T) {
	const bookmark, added = `{"type":"BOOKMARK","object":{}}` + "\n", `{"type":"ADDED","object":{}}` + "\n"
	for name, test := range map[string]struct {
		fault Fault
		body  string
		want  int64
	}{
		"nothing":                       {nil, added, 0},
		"an error":                      {Fail(500), added, 1},
		"the next handler is not asked": {Respond(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), "", 1},
		"a bookmark is dropped":         {DropBookmarks(), bookmark, 1},
		"there is no bookmark":          {DropBookmarks(), added, 0},
		"a delay":                       {DelayBookmarks(time.Millisecond), bookmark, 0},
		"a second event":                {GarbleFrame(2), added + bookmark, 1},
		"there is no second event":      {GarbleFrame(2), added, 0},
		"a body that breaks":            {CutAt(10), added, 1},
		"a body that is shorter":        {CutAt(1000), added, 0},
		"the first of no requests":      {Times(0, Fail(500)), added, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var effects atomic.Int64
			handler := OnEffect(test.fault, func() { effects.Add(1) })(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.body)
			}))
			func() {
				defer func() { _ = recover() }() // http.ErrAbortHandler
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?watch=true", nil))
			}()
			if got := effects.Load(); got != test.want {
				t.Errorf("%d effects, want %d", got, test.want)
			}
		})
	}
}
