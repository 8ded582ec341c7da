package discovery_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/gvrkit/gvrkit/discovery"
)

// A list of types is older than a question if the question joins a request that was sent before.
func TestResolveAll_HasATypeThatWasServedBefore(t *testing.T) {
	for class, selector := range map[string]discovery.Selector{
		"named":     {Groups: []string{"example.org"}},
		"crds.list": {Groups: []string{"example.org"}, CRDLabels: labels.SelectorFromSet(labels.Set{"x": "y"})},
	} {
		t.Run(class, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.update(func() { w.fault[class] = "late" })
				if class == "crds.list" { // the type is served, and gets its label
					w.update(func() { w.setCRD(gadget("v1")) })
					sleep(3 * time.Second)
				}
				var wg sync.WaitGroup
				defer wg.Wait()
				wg.Go(func() {
					if all, err := r.ResolveAll(t.Context(), selector); err != nil || len(all) > 0 {
						t.Errorf("before: %v, %v", all, err)
					}
				})
				sleep(100 * time.Millisecond)
				w.update(func() {
					c := gadget("v1")
					c.labels = map[string]string{"x": "y"}
					w.setCRD(c)
					w.setAPI(&apiServiceObject{name: gadgetsService, auto: "true", available: true})
				})
				sleep(100 * time.Millisecond)
				if all, err := r.ResolveAll(t.Context(), selector); err != nil || len(all) != 1 {
					t.Errorf("after: %v, %v", all, err)
				}
			})
		})
	}
}

var gadgetsV2 = gadgets.GroupResource().WithVersion("v2")

// The request of another question for the same group version may have been sent before the type was served.
func TestRun_ANotFoundResponseThatIsOlderThanTheQuestionDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		_, stop := started(t, w, r, func() {
			for _, class := range []string{"crds.list", "crds.get", "apis.list", "apis.get"} {
				w.fault[class] = "403"
			}
		})
		defer stop()
		sleep(10 * time.Second)
		w.update(func() { w.fault["version"] = "late" })
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.ResolveGVR(t.Context(), gadgets); !errors.Is(err, discovery.ErrNotServed) {
				t.Errorf("before: %v", err)
			}
		})
		sleep(100 * time.Millisecond)
		w.update(func() {
			w.setCRD(gadget("v1"))
			w.setAPI(&apiServiceObject{name: "v1.example.org", auto: "true", available: true})
		})
		sleep(100 * time.Millisecond)
		if _, err := r.ResolveGVR(t.Context(), gadgets); err != nil {
			t.Errorf("after: %v", err)
		}
		wg.Wait()
	})
}

// Its deletion says nothing about the new one.
func TestRun_ARecreatedCRDThatWasNotReadIsNotRefused(t *testing.T) {
	for _, fault := range []string{"", "403", "late"} {
		t.Run(fault, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				_, stop := started(t, w, r, func() { w.setCRD(gadget("v1")) })
				defer stop()
				sleep(10 * time.Second)
				w.update(func() {
					w.fault["crds.get"] = fault
					w.dropCRD(gadgetsCRD)
					c := gadget("v1")
					c.uid = "2"
					w.setCRD(c)
				})
				for range 10 {
					sleep(30 * time.Millisecond)
					if res, err := r.ResolveGVR(t.Context(), gadgets); errors.Is(err, discovery.ErrNotServed) {
						t.Errorf("recreated: %+v %v", res, err)
					}
				}
			})
		})
	}
}

// A refusal whose request was sent before a change must not be stored after it.
func TestRun_ARefusalThatIsOlderThanAnEventIsNotStored(t *testing.T) {
	for name, ask := range map[string]func(*testing.T, *discovery.Resolver) error{
		"ResolveGVR": func(t *testing.T, r *discovery.Resolver) error {
			t.Helper()
			_, err := r.ResolveGVR(t.Context(), gadgetsV2)
			return err
		},
		"Resolve": func(t *testing.T, r *discovery.Resolver) error {
			t.Helper()
			_, err := r.Resolve(t.Context(), "gadgets.v2.example.org")
			return err
		},
		"ResourceFor": func(_ *testing.T, r *discovery.Resolver) error {
			_, err := r.RESTMapper().ResourceFor(gadgetsV2)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				_, stop := started(t, w, r, func() { w.setCRD(gadget("v1")) })
				defer stop()
				sleep(10 * time.Second)
				w.update(func() { w.fault["version"], w.fault["named"] = "late", "late" })
				var wg sync.WaitGroup
				wg.Go(func() {
					if err := ask(t, r); !errors.Is(err, discovery.ErrNotServed) {
						t.Errorf("before: %v", err)
					}
				})
				sleep(990 * time.Millisecond)
				w.update(func() {
					w.lags = []time.Duration{8 * time.Second}
					w.setCRD(gadget("v1", "v2"))
				})
				wg.Wait()
				synctest.Wait()
				w.update(func() { clear(w.fault) })
				if err := ask(t, r); err != nil {
					t.Errorf("after the event: %v", err)
				}
			})
		})
	}
}

// Two questions share the request for a CRD, which may have been sent before its last event.
func TestRun_ACRDThatWasReadBeforeItsLastEventIsReadAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		_, stop := started(t, w, r, func() { w.setCRD(gadget("v1")) })
		defer stop()
		sleep(10 * time.Second)
		w.update(func() {
			w.fault["crds.get"] = "late"
			w.lags = []time.Duration{20 * time.Second}
			w.setCRD(gadget("v1", "v2"))
		})
		synctest.Wait()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.ResolveGVR(t.Context(), gadgetsV2); err != nil {
				t.Errorf("v2: %v", err)
			}
		})
		sleep(100 * time.Millisecond)
		w.update(func() { w.setCRD(gadget("v1", "v2", "v3")) })
		synctest.Wait()
		if _, err := r.ResolveGVR(t.Context(), gadgets.GroupResource().WithVersion("v3")); err != nil {
			t.Errorf("v3: %v", err)
		}
		wg.Wait()
	})
}
