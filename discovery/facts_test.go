package discovery_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// An API server that is behind may still serve a type with the scope that has ended.
func TestFacts_TheEndOfAScopeIsKnownForAMinute(t *testing.T) {
	clusterGadget := func(uid string) crdObject {
		crd := gadget("v1")
		crd.namespaced, crd.uid = false, uid
		return crd
	}
	for name, tc := range map[string]struct {
		forbidden bool // CRDs
		happens   func(w *memoryServer)
		ended     bool // the scope before, namespaced
	}{
		"nothing":          {false, func(*memoryServer) {}, false},
		"it is deleted":    {false, func(w *memoryServer) { w.dropCRD(gadgetsCRD) }, true},
		"it is replaced":   {false, func(w *memoryServer) { w.dropCRD(gadgetsCRD); w.setCRD(clusterGadget("2")) }, true},
		"CRDs are unknown": {true, func(w *memoryServer) { w.dropCRD(gadgetsCRD); w.setCRD(clusterGadget("2")) }, true},
		"only a version ends": {false, func(w *memoryServer) {
			crd := gadget("v1", "v2")
			crd.generation = 2
			w.setCRD(crd)
		}, false},
		"it serves nothing first": {false, func(w *memoryServer) {
			crd := gadget()
			crd.generation = 2
			w.setCRD(crd)
			w.mu.Unlock()
			sleep(5 * time.Minute)
			w.mu.Lock()
			w.dropCRD(gadgetsCRD)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				_, stop := started(t, w, r, func() {
					w.setCRD(gadget("v1"))
					if tc.forbidden {
						w.fault["crds.list"], w.fault["crds.watch"] = "403", "403"
					}
				})
				check := func(when string, earliest, latest time.Time) {
					t.Helper()
					synctest.Wait()
					facts, gr := typefacts.Of(r), gadgets.GroupResource()
					if at := facts.ScopeEnded(gr, false); !at.IsZero() {
						t.Errorf("%s, the end of the other scope: %v", when, at)
					}
					switch at := facts.ScopeEnded(gr, true); {
					case earliest.IsZero() && !at.IsZero():
						t.Errorf("%s, the end: %v, want none", when, at)
					case at.Before(earliest), at.After(latest):
						t.Errorf("%s, the end: %v, want %v to %v", when, at, earliest, latest)
					}
				}
				check("before", time.Time{}, time.Time{})
				begun := time.Time{}
				w.update(func() { tc.happens(w) })
				if tc.ended {
					begun = time.Now()
				}
				patience := 10 * time.Second
				if tc.forbidden {
					patience = 2 * time.Minute // a poll
				}
				sleep(patience)
				check("after", begun, time.Now())
				sleep(50 * time.Second)
				check("almost a minute later", begun, time.Now())
				sleep(2 * time.Minute)
				bolt := gadget("v1")
				bolt.name, bolt.plural, bolt.uid = "bolts.example.org", "bolts", "3"
				w.update(func() { w.setCRD(bolt) })
				sleep(2 * time.Minute)
				check("after another change", time.Time{}, time.Time{})
				stop()
			})
		})
	}
}
