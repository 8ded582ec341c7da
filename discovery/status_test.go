package discovery_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// Each question counts once, also if it needs several requests.
func TestStatus_CountsAnswersByOutcome(t *testing.T) {
	ways := map[string]func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, kind string) error{
		"Resolve": func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, _ string) error {
			t.Helper()
			_, err := r.Resolve(t.Context(), discovery.RefOf(gvr).String())
			return err
		},
		"ResolveGVR": func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, _ string) error {
			t.Helper()
			_, err := r.ResolveGVR(t.Context(), gvr)
			return err
		},
		"ResolveGR": func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, _ string) error {
			t.Helper()
			_, err := r.ResolveGR(t.Context(), gvr.GroupResource())
			return err
		},
		"ResolveGVK": func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, kind string) error {
			t.Helper()
			_, err := r.ResolveGVK(t.Context(), gvr.GroupVersion().WithKind(kind))
			return err
		},
		"ResolveGK": func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, kind string) error {
			t.Helper()
			_, err := r.ResolveGK(t.Context(), schema.GroupKind{Group: gvr.Group, Kind: kind})
			return err
		},
		"Validate": func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, _ string) error {
			t.Helper()
			_, err := r.Validate(t.Context(), gvr)
			return err
		},
		"KindFor": func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, _ string) error {
			t.Helper()
			_, err := r.RESTMapper().KindFor(gvr)
			return err
		},
		"RESTMapping": func(t *testing.T, r *discovery.Resolver, gvr schema.GroupVersionResource, kind string) error {
			t.Helper()
			_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: gvr.Group, Kind: kind}, gvr.Version)
			return err
		},
	}
	bolts := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "bolts"}
	asked := func(t *testing.T, r *discovery.Resolver, ask func() error) discovery.Answers {
		t.Helper()
		before := r.Status().Answers
		_ = ask()
		after := r.Status().Answers
		return discovery.Answers{
			Served: after.Served - before.Served, NotServed: after.NotServed - before.NotServed,
			Inconclusive: after.Inconclusive - before.Inconclusive, Ambiguous: after.Ambiguous - before.Ambiguous,
		}
	}
	check := func(t *testing.T, what string, got, want discovery.Answers) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			s, _ := crdServer(t, define(gadgetsCRD, "1"))
			for what, r := range map[string]*discovery.Resolver{"while it runs": run(t, s, never()), "otherwise": s.resolver(t)} {
				for range 2 { // the second is known, where it runs
					check(t, what+", served", asked(t, r, func() error { return way(t, r, deployments, "Deployment") }), discovery.Answers{Served: 1})
				}
				check(t, what+", not served", asked(t, r, func() error { return way(t, r, bolts, "Bolt") }), discovery.Answers{NotServed: 1})
			}
			s.answer("*", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
			r := s.resolver(t)
			check(t, "inconclusive", asked(t, r, func() error { return way(t, r, deployments, "Deployment") }), discovery.Answers{Inconclusive: 1})
		})
	}
	r := newServer(t, aggregated, everything()...).resolver(t)
	check(t, "ambiguous", asked(t, r, func() error { _, err := r.Resolve(t.Context(), "ipamblocks"); return err }), discovery.Answers{Ambiguous: 1})
	check(t, "no question", asked(t, r, func() error { _, err := r.Resolve(t.Context(), "*"); return err }), discovery.Answers{})
}

func TestStatus_CountsRequests(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := s.resolver(t)
	if got := r.Status().Requests; got != 0 {
		t.Errorf("requests before the first = %d, want 0", got)
	}
	for _, ref := range []string{"pods", "widgets.v1.example.com", "bolts"} {
		_, _ = r.Resolve(t.Context(), ref)
	}
	s.answer("*", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
	_, _ = r.Resolve(t.Context(), "pods") // one that fails has been sent, too
	if got, want := r.Status().Requests, uint64(len(s.paths())); got != want || want == 0 {
		t.Errorf("requests = %d, the server has had %d", got, want)
	}
}

// Lists, watches and documents of a run count as requests.
func TestStatus_CountsTheRequestsOfARun(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	r := run(t, s, never())
	eventually(t, "as many requests as the server has had", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return r.Status().Requests == uint64(len(s.requests)) && len(s.requests) >= 4
	})
}

func TestStatus_CountsTheCallsOfAClient(t *testing.T) {
	r := fromCluster(t, fakecluster.New(podType, widgetType))
	if _, err := r.ResolveGVR(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	if got := r.Status().Requests; got != 1 {
		t.Errorf("requests for one group version = %d, want 1", got)
	}
	if _, err := r.Resolve(t.Context(), "widgets"); err != nil {
		t.Fatal(err)
	}
	if got := r.Status().Requests; got != 4 {
		t.Errorf("requests with those for the groups and both versions = %d, want 4", got)
	}
}

func TestStatus_CountsConcurrentQuestions(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	r := run(t, s, never())
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				_, _ = r.ResolveGVR(t.Context(), gadgets)
				_ = r.Status()
			}
		})
	}
	all.Wait()
	if got := r.Status().Answers; got != (discovery.Answers{Served: 4000}) {
		t.Errorf("answers = %+v, want 4000 served", got)
	}
}
