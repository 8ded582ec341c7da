package discovery_test

import (
	"errors"
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

// An informer may find another CRD before the watch of CRDs has it: the watch waits after a failure, or is that of a server that is behind.
func TestFacts_ACRDThatWasReadCountsBeforeTheWatchHasIt(t *testing.T) {
	for name, test := range map[string]struct {
		uids   []string // of the next CRDs, in order
		behind bool
	}{
		"the next one":                                {[]string{"2"}, false},
		"the one after the next":                      {[]string{"2", "3"}, false},
		"the next one, behind":                        {[]string{"2"}, true},
		"the one after the next, the watch is behind": {[]string{"2", "3"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				next, _ := started(t, w, r, func() { w.setCRD(gadget("v1")) })
				caughtUp := func() { clear(w.fault) }
				w.update(func() {
					if test.behind {
						caughtUp = w.delayEvents(w.crds)
						return
					}
					w.fault["crds.watch"], w.fault["crds.list"] = "500", "500"
					w.endWatches(w.crds, false)
				})
				sleep(time.Second)
				var last string
				for _, last = range test.uids {
					w.update(func() {
						w.dropCRD(gadgetsCRD)
						again := gadget("v1")
						again.uid = last
						w.setCRD(again)
					})
				}
				for range 2 { // at once, and again
					if uid, err := typefacts.Of(r).CRDUID(t.Context(), gadgets.GroupResource()); string(uid) != last || err != nil {
						t.Fatal(uid, err)
					}
					if res, err := r.Resolve(t.Context(), "gadgets.v1.example.org"); err == nil && string(res.CRDUID) != last {
						t.Errorf("resource = %+v", res)
					}
					sleep(time.Second)
				}
				if res, err := r.Resolve(t.Context(), "gadgets.v1.example.org"); err != nil || string(res.CRDUID) != last {
					t.Errorf("resource = %+v, %v", res, err)
				}
				wantEvents(t, next, "Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org")
				w.update(caughtUp)
				sleep(time.Minute)
				wantEvents(t, next)
				w.update(func() { w.dropCRD(gadgetsCRD) })
				sleep(time.Minute)
				wantEvents(t, next, "Removed gadgets.v1.example.org (CRDDeleted)")
			})
		})
	}
}

// A list of CRDs that is on its way when an informer finds another CRD does not have it.
func TestFacts_ACRDThatWasReadIsLaterThanAListOnItsWay(t *testing.T) {
	again := gadget("v1")
	again.uid = "2"
	for name, test := range map[string]struct{ before, during func(w *memoryServer) }{
		"without the CRD": {
			func(w *memoryServer) { w.dropCRD(gadgetsCRD) },
			func(w *memoryServer) { w.setCRD(again) },
		},
		"with the former": {
			func(*memoryServer) {},
			func(w *memoryServer) { w.dropCRD(gadgetsCRD); w.setCRD(again) },
		},
		"with the former, which is changed": {
			func(*memoryServer) {},
			func(w *memoryServer) { w.setCRD(gadget("v1", "v2")); w.dropCRD(gadgetsCRD); w.setCRD(again) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				next, _ := started(t, w, r, func() { w.setCRD(gadget("v1")) })
				w.update(func() {
					w.fault["crds.watch"], w.fault["crds.list"] = "500", "500"
					w.endWatches(w.crds, false)
				})
				sleep(time.Second)
				lists := 0
				w.update(func() {
					test.before(w)
					w.fault["crds.list"] = "late"
					lists = w.counts["crds.list"]
				})
				for asked := false; !asked; sleep(10 * time.Millisecond) {
					w.update(func() { asked = w.counts["crds.list"] > lists })
				}
				w.update(func() {
					clear(w.fault)
					test.during(w)
				})
				if uid, err := typefacts.Of(r).CRDUID(t.Context(), gadgets.GroupResource()); string(uid) != again.uid || err != nil {
					t.Fatal(uid, err)
				}
				sleep(time.Minute)
				wantEvents(t, next, "Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org")
				w.update(func() { w.dropCRD(gadgetsCRD) })
				sleep(time.Minute)
				wantEvents(t, next, "Removed gadgets.v1.example.org (CRDDeleted)")
			})
		})
	}
}

// The response of a server that is slow says that there is no CRD. The watch of CRDs may have shown another one meanwhile.
func TestFacts_ACRDIsMissingInALateResponse(t *testing.T) {
	again := gadget("v1")
	again.uid = "2"
	for name, test := range map[string]struct {
		before, during func(w *memoryServer)
		want           string // the UID; empty: there is no CRD
	}{
		"and was created again":           {func(w *memoryServer) { w.dropCRD(gadgetsCRD) }, func(w *memoryServer) { w.setCRD(again) }, "2"},
		"and is deleted":                  {func(w *memoryServer) { w.dropCRD(gadgetsCRD) }, func(*memoryServer) {}, ""},
		"and the watch has the former":    {func(w *memoryServer) { w.delayEvents(w.crds); w.dropCRD(gadgetsCRD) }, func(*memoryServer) {}, ""},
		"and the watch has it still":      {func(w *memoryServer) { w.delayEvents(w.crds); w.dropCRD(gadgetsCRD) }, func(w *memoryServer) { w.setCRD(again) }, ""},
		"and the watch has its end later": {func(w *memoryServer) { w.dropCRD(gadgetsCRD); w.setCRD(again); w.dropCRD(gadgetsCRD) }, func(*memoryServer) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				started(t, w, r, func() { w.setCRD(gadget("v1")) })
				w.update(func() {
					test.before(w)
					w.fault["crds.get"] = "late"
				})
				time.AfterFunc(100*time.Millisecond, func() { w.update(func() { test.during(w) }) })
				uid, err := typefacts.Of(r).CRDUID(t.Context(), gadgets.GroupResource())
				if string(uid) != test.want || errors.Is(err, discovery.ErrNotServed) != (test.want == "") {
					t.Errorf("got %q, %v", uid, err)
				}
			})
		})
	}
}
