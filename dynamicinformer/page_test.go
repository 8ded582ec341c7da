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

// look returns what f's page answers to query.
func look(t *testing.T, handler http.Handler, query string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query, http.NoBody))
	return w
}

// lookAs is look, and reads the answer, which is JSON, into to.
func lookAs(t *testing.T, handler http.Handler, query string, to any) {
	t.Helper()
	if err := json.Unmarshal(look(t, handler, "format=json&"+query).Body.Bytes(), to); err != nil {
		t.Fatal(err)
	}
}

// threeWays starts a factory with one informer that follows and has a handler that hangs,
// one that may not, and one whose type is not there, and lets a minute pass.
func threeWays(t *testing.T) (f *dynamicinformer.Factory, handler *slow) {
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

// shownBy returns the informer on gvr that is on the page, and what Status says of it.
func shownBy(t *testing.T, f *dynamicinformer.Factory, gvr schema.GroupVersionResource) (statuspage.Informer, status.Informer) {
	t.Helper()
	var table statuspage.Table
	lookAs(t, f.Handler(), "q="+gvr.Resource, &table)
	of := func(s status.Informer) bool { return s.GVR == gvr }
	all := f.Status()
	if at := slices.IndexFunc(all, of); at >= 0 && len(table.Informers) == 1 && table.At.Equal(time.Now()) {
		return table.Informers[0], all[at]
	}
	t.Fatalf("%v is not on the page, or not in Status: %+v", gvr, table)
	return statuspage.Informer{}, status.Informer{}
}

// All that Status says is on the page, under the same words.
func TestHandler_ShowsWhatStatusSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, handler := threeWays(t)
		got, s := shownBy(t, f, blocks)
		want := statuspage.Informer{
			Name: "ipamblocks.v1.crd.projectcalico.org", Group: blocks.Group, Version: "v1", Resource: "ipamblocks",
			Served: &statuspage.Served{Name: "ipamblocks.v1.crd.projectcalico.org", Kind: "IPAMBlock"},
			State:  "Degraded", Reason: "Forbidden", Message: "cannot " + s.Verb + ": not you", Advice: `grant this rule to the user in a ClusterRole: - {apiGroups: ["crd.projectcalico.org"], resources: ["ipamblocks"], verbs: ["list", "watch"]}`,
			Verb: s.Verb, Error: s.Err.Error(), Since: s.Since, Attempts: s.Attempts, NextRetry: s.NextRetry,
			Traffic: statuspage.Traffic{Failures: map[string]uint64{"Forbidden": s.Traffic.Failures[status.ReasonForbidden]}}, Pinned: true,
		}
		if diff := cmp.Diff(want, got); diff != "" || s.NextRetry.IsZero() || s.Attempts == 0 {
			t.Errorf("forbidden (-want +got):\n%s", diff)
		}

		got, s = shownBy(t, f, widgets)
		want = statuspage.Informer{
			Name: "widgets.v1.example.com", Group: "example.com", Version: "v1", Resource: "widgets", VersionPolicy: "FollowPreferred",
			Served: &statuspage.Served{Name: "widgets.v1.example.com", Kind: "Widget", Namespaced: true},
			State:  "Synced", Since: s.Since, Namespace: "ns", Objects: 1, ResourceVersion: s.ResourceVersion,
			Traffic: statuspage.Traffic{Lists: 1, Watches: s.Traffic.Watches, Events: 1, LastEvent: s.Traffic.LastEvent}, Leases: 1,
			Holders:  []statuspage.Holder{{Name: "gc", Leases: 1, Since: s.Owners[0].Since}},
			Handlers: []statuspage.Handling{{Handler: "github.com/gvrkit/gvrkit/dynamicinformer_test.slow", Lease: "gc", Backlog: 1, RunningSince: s.Handlers[0].RunningSince, BehindSince: s.Handlers[0].BehindSince}},
		}
		if diff := cmp.Diff(want, got); diff != "" || s.Since.IsZero() {
			t.Errorf("synced (-want +got):\n%s", diff)
		}

		got, s = shownBy(t, f, gadgets)
		if got.State != "NotServed" || got.Reason != "NotFound" || "gadgets.v1.example.com: "+got.Message != s.Err.Error() || got.Served != nil || got.Verb != "" {
			t.Errorf("not served: %+v", got)
		}
		close(handler.let)
		shutdown(t, f)
		if got, _ := shownBy(t, f, widgets); got.State != "Stopped" || got.Message != "the informer was stopped" {
			t.Errorf("after Shutdown: %+v", got)
		}
	})
}

func TestHandler_ShowsWhatExplainTells(t *testing.T) {
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
		// By the name in full, or as a CustomResourceDefinition is called.
		for _, name := range []string{"widgets.v1.example.com", "widgets.example.com"} {
			var d statuspage.Detail
			lookAs(t, handler, "resource="+name, &d)
			var chain []status.Step
			for _, step := range d.Chain {
				chain = append(chain, status.Step{About: status.StepKind(step.About), Text: step.Text})
			}
			if diff := cmp.Diff(e.Chain, chain); diff != "" {
				t.Errorf("%s: chain (-want +got):\n%s", name, diff)
			}
			if d.Name != "widgets.v1.example.com" || !d.At.Equal(e.At) || len(d.Informers) != 1 || d.Informers[0].State != "Synced" {
				t.Errorf("%s: %+v", name, d)
			}
			want := &statuspage.Discovery{Running: true, Types: 1, Requests: e.Discovery.Requests, Answers: statuspage.Answers(e.Discovery.Answers), Sources: []statuspage.DiscoverySource{
				{Name: "CustomResourceDefinitions", State: "Forbidden", Since: e.Discovery.CRDs.Since, Verb: e.Discovery.CRDs.Verb, Error: e.Discovery.CRDs.Err.Error()},
				{Name: "APIServices", State: "Forbidden", Since: e.Discovery.APIServices.Since, Verb: e.Discovery.APIServices.Verb, Error: e.Discovery.APIServices.Err.Error()},
				{Name: "Discovery documents", State: string(e.Discovery.Documents.State), Since: e.Discovery.Documents.Since},
			}}
			if diff := cmp.Diff(want, d.Discovery); diff != "" || want.Requests == 0 || want.Answers.Served == 0 {
				t.Errorf("%s: discovery (-want +got):\n%s", name, diff)
			}
		}
		shutdown(t, f)
	})
}

func TestHandler_SaysThatThereIsNoInformer(t *testing.T) {
	f := newFactory(t, fakecluster.New(widgetType))
	f.ForResource(widgets)
	for name, says := range map[string]string{
		"widgets.v2.example.com":     "There is no informer on widgets.v2.example.com. There is one on widgets.v1.example.com.",
		"gadgets.v1.example.com":     "There is no informer on gadgets.v1.example.com.",
		"gadgets":                    "There is no informer on a resource of that name.",
		"%3Cscript%3Ealert(1)%2F%2F": "There is no informer on a resource of that name.",
	} {
		got := look(t, f.Handler(), "resource="+name)
		if got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), says+"\n") {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
}

// A name that has no informer is not found in a factory that has discovery, which the page shows.
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

// A GVR is whatever the program says; even one that is no name has a page.
func TestHandler_FindsTypesOfAnyName(t *testing.T) {
	f := newFactory(t, fakecluster.New())
	f.ForResource(schema.GroupVersionResource{Group: "<script>alert(1)</script>", Version: "next", Resource: "a b"})
	got := look(t, f.Handler(), "format=html&resource=a%20b.next.%3Cscript%3Ealert(1)%3C/script%3E")
	if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "a b.next.&lt;script&gt;") || strings.Contains(got.Body.String(), "<script>alert") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

// Ten thousand types are looked at in a moment.
func TestHandler_TenThousandTypes(t *testing.T) {
	f := newFactory(t, fakecluster.New())
	for i := range 10_000 {
		f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprint("type", i)})
	}
	var table statuspage.Table
	lookAs(t, f.Handler(), "", &table)
	if len(table.Informers) != 500 || table.NotShown != 9_500 || table.Summary.States["Unknown"] != 10_000 {
		t.Errorf("%d shown, %d not shown, %+v", len(table.Informers), table.NotShown, table.Summary)
	}
}
