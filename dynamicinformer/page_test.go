package dynamicinformer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/status"
)

var gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}

// look returns the response of handler to query.
func look(t *testing.T, handler http.Handler, query string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query, http.NoBody))
	return w
}

// lookAs is look, and decodes the JSON of the response into to.
func lookAs(t *testing.T, handler http.Handler, query string, to any) {
	t.Helper()
	if err := json.Unmarshal(look(t, handler, "format=json&"+query).Body.Bytes(), to); err != nil {
		t.Fatal(err)
	}
}

// threeInformers returns a factory that has run for a minute with three informers: one has synced and has
// a handler that hangs, one is forbidden, and the type of the third is not served.
func threeInformers(t *testing.T) (f *dynamicinformer.Factory, handler *slow) {
	t.Helper()
	cluster := fakecluster.New(widgetType, blockType)
	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.GVR == blocks {
			return apierrors.NewForbidden(blocks.GroupResource(), "", errors.New("not you"))
		}
		return nil
	})
	create(t, cluster, widgets, "ns", "a")
	f = newFactory(t, cluster, withDiscovery(t, cluster))
	l := acquire(t, f, widgets, dynamicinformer.WithLeaseName("gc"), dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()), dynamicinformer.WithNamespace("ns"))
	handler = newSlow()
	if _, err := l.AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	f.ForResource(blocks)
	f.ForResource(gadgets)
	f.Start(t.Context())
	time.Sleep(time.Minute)
	synctest.Wait()
	return f, handler
}

// shownBy returns the informer on gvr on the page, and in Status.
func shownBy(t *testing.T, f *dynamicinformer.Factory, gvr schema.GroupVersionResource) (map[string]any, status.Informer) {
	t.Helper()
	var table struct {
		At        time.Time
		Informers []map[string]any
	}
	lookAs(t, f.Handler(), "q="+gvr.Resource, &table)
	of := func(s status.Informer) bool { return s.GVR == gvr }
	all := f.Status()
	if at := slices.IndexFunc(all, of); at >= 0 && len(table.Informers) == 1 && table.At.Equal(time.Now()) {
		return table.Informers[0], all[at]
	}
	t.Fatalf("%v is not on the page, or not in Status: %+v", gvr, table)
	return nil, status.Informer{}
}

// asJSON returns value after encoding to JSON and decoding.
func asJSON(t *testing.T, value any) (read any) {
	t.Helper()
	body, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// checkSynced expects the informer on widgets to be synced, in Status and on the page.
func checkSynced(t *testing.T, f *dynamicinformer.Factory) {
	t.Helper()
	got, s := shownBy(t, f, widgets)
	if diff := cmp.Diff(asJSON(t, s), any(got)); diff != "" || s.Since.IsZero() {
		t.Errorf("synced (-want +got):\n%s", diff)
	}
	if s.State != status.StateSynced || s.Namespace != "ns" || s.Objects != 1 || s.ResourceVersion == "" || s.Traffic.Lists != 1 || s.Traffic.Events != 1 || s.Leases != 1 || s.VersionPolicy != discovery.FollowPreferred() {
		t.Errorf("synced: %+v", s)
	}
	if diff := cmp.Diff([]status.Owner{{Name: "gc", Leases: 1, Since: s.Owners[0].Since}}, s.Owners); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]status.Handler{{Handler: "github.com/gvrkit/gvrkit/dynamicinformer_test.slow", Lease: "gc", Backlog: 1, RunningSince: s.Handlers[0].RunningSince, BehindSince: s.Handlers[0].BehindSince}}, s.Handlers); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}

// The page has all fields of Status with the same names.
func TestHandler_ShowsAllFieldsOfStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, handler := threeInformers(t)
		got, s := shownBy(t, f, blocks)
		if diff := cmp.Diff(asJSON(t, s), any(got)); diff != "" || s.NextRetry.IsZero() || s.Attempts == 0 || s.Traffic.Failures[status.ReasonForbidden] == 0 || !s.Pinned {
			t.Errorf("forbidden: %+v (-want +got):\n%s", s, diff)
		}
		want := map[string]any{
			"name": "ipamblocks.v1.crd.projectcalico.org", "group": blocks.Group, "version": "v1", "resource": "ipamblocks",
			"served": map[string]any{"name": "ipamblocks.v1.crd.projectcalico.org", "kind": "IPAMBlock", "namespaced": false},
			"state":  "Degraded", "reason": "Forbidden", "message": "cannot " + s.Verb + ": not you",
			"advice": `grant this rule to the user in a ClusterRole: - {apiGroups: ["crd.projectcalico.org"], resources: ["ipamblocks"], verbs: ["list", "watch"]}`,
			"verb":   s.Verb, "error": s.Err.Error(), "pinned": true,
		}
		for key, value := range want {
			if diff := cmp.Diff(value, got[key]); diff != "" {
				t.Errorf("forbidden: %s (-want +got):\n%s", key, diff)
			}
		}

		checkSynced(t, f)

		got, s = shownBy(t, f, gadgets)
		if got["state"] != "NotServed" || got["reason"] != "NotFound" || "gadgets.v1.example.com: "+got["message"].(string) != s.Err.Error() || got["served"] != nil || got["verb"] != nil {
			t.Errorf("not served: %+v", got)
		}
		close(handler.let)
		shutdown(t, f)
		if got, _ := shownBy(t, f, widgets); got["state"] != "Stopped" || got["message"] != "the informer was stopped" {
			t.Errorf("after Shutdown: %+v", got)
		}
	})
}

func TestHandler_ShowsTheExplanation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets)
		handler := f.Handler()
		if got := look(t, handler, "").Body.String(); !strings.Contains(got, "NotStarted: the factory has not been started; to do: call Start on the factory") {
			t.Errorf("before Start: %s", got)
		}
		f.Start(t.Context())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		e := f.Explain(widgets)
		// By the full name, or by the name of the CustomResourceDefinition.
		for _, name := range []string{"widgets.v1.example.com", "widgets.example.com"} {
			var d map[string]any
			lookAs(t, handler, "resource="+name, &d)
			if diff := cmp.Diff(asJSON(t, e), any(d)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			informers, _ := d["informers"].([]any)
			if d["name"] != "widgets.v1.example.com" || len(informers) != 1 || informers[0].(map[string]any)["state"] != "Synced" {
				t.Errorf("%s: %+v", name, d)
			}
			chain, _ := d["chain"].([]any)
			sources, _ := d["discovery"].(map[string]any)["sources"].([]any)
			if len(chain) != len(e.Chain) || len(sources) != 3 || e.Discovery.Requests == 0 || e.Discovery.Answers.Served == 0 {
				t.Errorf("%s: %+v", name, d)
			}
		}
		shutdown(t, f)
	})
}

func TestHandler_ReportsThatThereIsNoInformer(t *testing.T) {
	f := newFactory(t, fakecluster.New(widgetType))
	f.ForResource(widgets)
	for name, says := range map[string]string{
		"widgets.v2.example.com":     "There is no informer on widgets.v2.example.com. There is one on widgets.v1.example.com.",
		"gadgets.v1.example.com":     "There is no informer on gadgets.v1.example.com.",
		"gadgets.example.com":        "There is no informer on a resource with this name.",
		"widgets":                    "There is no informer on a resource with this name. A name without a group is one of the core group.",
		"%3Cscript%3Ealert(1)%2F%2F": "There is no informer on a resource with this name. A name without a group is one of the core group.",
	} {
		got := look(t, f.Handler(), "resource="+name)
		if got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), says+"\n") {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
}

// For a name without an informer, the page returns 404 and shows that the factory has discovery.
func TestHandler_NotFoundShowsDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		for _, name := range []string{"gadgets", "gadgets.v1.example.com"} {
			got := look(t, f.Handler(), "resource="+name)
			if text := got.Body.String(); got.Code != http.StatusNotFound || !strings.Contains(text, "\nDiscovery           not running: each lookup is a request to the server\n") {
				t.Errorf("%s: %d %s", name, got.Code, text)
			}
		}
		shutdown(t, f)
	})
}

// Each GVR of a program has a page, also if it is not a valid name.
func TestHandler_FindsTypesOfAnyName(t *testing.T) {
	f := newFactory(t, fakecluster.New())
	f.ForResource(schema.GroupVersionResource{Group: "<script>alert(1)</script>", Version: "next", Resource: "a b"})
	got := look(t, f.Handler(), "format=html&resource=a%20b.next.%3Cscript%3Ealert(1)%3C/script%3E")
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "a b.next.&lt;script&gt;") || strings.Contains(got.Body.String(), "<script>alert") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// The page is fast with ten thousand types.
func TestHandler_TenThousandTypes(t *testing.T) {
	f := newFactory(t, fakecluster.New())
	for i := range 10_000 {
		f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprint("type", i)})
	}
	var table struct {
		Summary   statuspage.Summary
		NotShown  int
		Informers []any
	}
	lookAs(t, f.Handler(), "", &table)
	if len(table.Informers) != 500 || table.NotShown != 9_500 || table.Summary.States["Unknown"] != 10_000 {
		t.Errorf("%d shown, %d not shown, %+v", len(table.Informers), table.NotShown, table.Summary)
	}
}
