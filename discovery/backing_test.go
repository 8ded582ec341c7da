package discovery_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
)

const gadgetsService = "v1.example.org"

// serveByService makes another server serve these resources in v1 of example.org.
func (w *memoryServer) serveByService(plurals ...string) {
	w.backends[gadgetsService] = plurals
	w.setAPI(&apiServiceObject{name: gadgetsService, service: true, available: true})
}

func TestEvidence_ABackingThatChangesWhileUnknownIsReportedLater(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, w, r, func() { w.serveByService("gadgets") })
		w.update(func() {
			w.fault["apis.list"] = "403"
			w.endWatches(w.apis, true)
		})
		sleep(time.Minute)
		if state := r.Status().APIServices.State; state != discovery.SourceForbidden {
			t.Fatalf("APIServices: %s", state)
		}
		w.update(func() {
			w.setCRD(gadget("v1"))
			w.setAPI(&apiServiceObject{name: gadgetsService, auto: "true", available: true})
			w.fault["apis.list"] = ""
		})
		sleep(2 * time.Minute)
		wantEvents(t, next, "Changed gadgets.v1.example.org [Backing]")
	})
}

// Another server has other objects, and its versions can't be compared.
func TestEvidence_AnotherServiceOfAnAPIServiceIsAnotherBacking(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, w, r, func() { w.serveByService("gadgets") })
		by := func(server, want string, events ...string) {
			t.Helper()
			w.update(func() {
				w.setAPI(&apiServiceObject{name: gadgetsService, service: true, server: server, available: true})
			})
			sleep(time.Minute)
			if res, err := r.ResolveGVR(t.Context(), gadgets); err != nil || res.Service != want || res.Backing != discovery.BackingAggregated {
				t.Errorf("served by %+v, %v", res, err)
			}
			wantEvents(t, next, events...)
		}
		by("y", "x/y")
		by("z", "x/z", "Changed gadgets.v1.example.org [Backing]")
		by("z", "x/z")
		w.update(func() { // the documents change, too
			w.backends[gadgetsService] = []string{"gadgets", "gizmos"}
			w.setAPI(&apiServiceObject{name: gadgetsService, service: true, server: "q", available: true})
		})
		sleep(5 * time.Second)
		wantEvents(t, next, "Changed gadgets.v1.example.org [Backing]", "Added gizmos.v1.example.org")
		by("z", "x/z", "Changed gadgets.v1.example.org [Backing]", "Changed gizmos.v1.example.org [Backing]")
		w.update(func() { w.drop(w.apis, gadgetsService) })
		by("y", "x/y", "Changed gadgets.v1.example.org [Backing]", "Changed gizmos.v1.example.org [Backing]")
		w.update(func() {
			w.fault["apis.list"] = "403"
			w.endWatches(w.apis, true)
		})
		sleep(time.Minute)
		w.update(func() {
			w.setAPI(&apiServiceObject{name: gadgetsService, service: true, server: "z", available: true})
			w.fault["apis.list"] = ""
		})
		sleep(2 * time.Minute)
		wantEvents(t, next, "Changed gadgets.v1.example.org [Backing]", "Changed gizmos.v1.example.org [Backing]")
	})
}

// The versions of a type may have different servers. Informers are on any of them.
func TestEvidence_AnotherServerOfAVersionThatIsNotPreferred(t *testing.T) {
	byService := func(name string) *apiServiceObject {
		return &apiServiceObject{name: name, service: true, available: true}
	}
	backingOf := func(t *testing.T, r *discovery.Resolver, version string) discovery.Resource {
		t.Helper()
		res, err := r.ResolveGVR(t.Context(), gadgets.GroupResource().WithVersion(version))
		if err != nil {
			t.Error(err)
		}
		return res
	}
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, w, r, func() {
			w.setCRD(gadget("v1"))
			w.backends["v2.example.org"] = []string{"gadgets"}
			w.setAPI(byService("v2.example.org"))
		})
		if v1, v2 := backingOf(t, r, "v1"), backingOf(t, r, "v2"); v1.Backing != discovery.BackingCRD || v1.CRDUID != "1" || v2.Backing != discovery.BackingAggregated || v2.CRDUID != "" {
			t.Fatalf("v1: %+v, v2: %+v", v1, v2)
		}
		w.update(func() {
			again := gadget("v1")
			again.uid = "2"
			w.dropCRD(gadgetsCRD)
			w.setCRD(again)
		})
		sleep(time.Minute)
		if v1, events := backingOf(t, r, "v1"), next(); v1.CRDUID != "2" || len(events) == 0 {
			t.Errorf("v1: %+v, events: %q", v1, events)
		}
		w.update(func() {
			w.backends[gadgetsService] = []string{"gadgets"}
			w.setAPI(byService(gadgetsService))
		})
		sleep(2 * time.Minute)
		wantEvents(t, next, "Changed gadgets.v2.example.org [Backing]")
		if v1 := backingOf(t, r, "v1"); v1.Backing != discovery.BackingAggregated {
			t.Errorf("v1: %+v", v1)
		}
	})
}

// A server that starts, or another one, may respond that there are no CRDs. If documents list CRDs, types are not taken for
// built in: that they are of CRDs would be another backing, and all their objects would be deleted and added again.
func TestEvidence_CRDsThatDocumentsListAreNotAbsent(t *testing.T) {
	for _, without := range [][]string{{"v1.apiregistration.k8s.io"}, {}} {
		inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			w.update(func() {
				w.setCRD(gadget("v1"))
				for _, api := range without {
					w.dropAPI(api)
				}
				w.fault["crds.list"], w.fault["apis.list"] = "404", "404"
			})
			sleep(3 * time.Second)
			next := recordEvents(t, r)
			runFor(t, r)
			sleep(2 * time.Minute)
			next()
			if res, err := r.ResolveGVR(t.Context(), gadgets); err != nil || res.Backing != discovery.BackingUnknown {
				t.Errorf("without %q: %q, %v", without, res.Backing, err)
			}
			if s := r.Status(); s.CRDs.State != discovery.SourceFailing || (s.APIServices.State == discovery.SourceAbsent) != (len(without) > 0) {
				t.Errorf("without %q: CRDs are %s, APIServices %s", without, s.CRDs.State, s.APIServices.State)
			}
			w.update(func() { clear(w.fault) })
			sleep(2 * time.Minute)
			wantEvents(t, next)
			if res, err := r.ResolveGVR(t.Context(), gadgets); err != nil || res.Backing != discovery.BackingCRD || res.CRDUID == "" {
				t.Errorf("without %q, healed: %q %q, %v", without, res.Backing, res.CRDUID, err)
			}
		})
	}
}

// A document that has never been read may list CRDs.
func TestEvidence_CRDsThatADocumentMayListAreNotAbsent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() {
			w.legacy = true
			w.setCRD(gadget("v1"))
			w.fault["crds.list"], w.fault["version"] = "404", "500 of /apis/apiextensions.k8s.io/v1"
		})
		sleep(3 * time.Second)
		runFor(t, r)
		sleep(5 * time.Minute)
		if res, err := r.ResolveGVR(t.Context(), gadgets); err != nil || res.Backing == discovery.BackingBuiltIn {
			t.Errorf("%q, %v", res.Backing, err)
		}
		if s := r.Status(); s.CRDs.State != discovery.SourceFailing {
			t.Errorf("CRDs are %s", s.CRDs.State)
		}
	})
}

// The first documents of a server that starts may lack CRDs, too. What was concluded from them ends with the next documents.
func TestEvidence_CRDsThatDocumentsListLaterWereNotAbsent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		const crds = "v1.apiextensions.k8s.io"
		backing := func(when string, want discovery.Backing) {
			t.Helper()
			if res, err := r.ResolveGVR(t.Context(), gadgets); err != nil || res.Backing != want {
				t.Errorf("%s: served by %q, %v, want %q", when, res.Backing, err, want)
			}
		}
		w.update(func() {
			w.setCRD(gadget("v1"))
			w.dropAPI(crds)
			w.dropAPI("v1.apiregistration.k8s.io")
			w.fault["crds.list"], w.fault["apis.list"] = "404", "404"
		})
		sleep(3 * time.Second)
		runFor(t, r)
		sleep(2 * time.Minute)
		backing("documents lack CRDs", discovery.BackingBuiltIn)

		w.update(func() { w.setAPI(&apiServiceObject{name: crds, auto: "onstart", available: true}) })
		sleep(2 * time.Minute)
		backing("documents list CRDs", discovery.BackingUnknown)

		w.update(func() { w.dropCRD(gadgetsCRD) })
		sleep(2 * time.Minute)
		if res, err := r.ResolveGVR(t.Context(), gadgets); err == nil {
			t.Errorf("without its CRD, the type is served by %q", res.Backing)
		}
		w.update(func() { w.fault["crds.list"] = "" })
		sleep(2 * time.Minute)
		w.update(func() {
			w.fault["crds.list"] = "503"
			w.endWatches(w.crds, true)
		})
		sleep(10 * time.Second)
		w.update(func() { w.setCRD(gadget("v1")) })
		sleep(2 * time.Minute)
		backing("only documents have the new CRD", discovery.BackingUnknown)
	})
}

// The list was not found before a document without the named groups refuted that, and is not found again.
func TestEvidence_ARefutedAbsenceIsReportedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemoryServer(1)
		r, err := discovery.NewForConfig(&rest.Config{Host: "http://server", Transport: w}, discovery.WithRequestTimeout(500*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		w.update(func() {
			w.dropAPI("v1.apiregistration.k8s.io")
			w.fault["apis.list"], w.fault["named"] = "404", "hang"
		})
		runFor(t, r)
		sleep(600 * time.Millisecond)
		if source := r.Status().APIServices; source.State != discovery.SourceFailing {
			t.Errorf("without the named groups: %s: %v", source.State, source.Err)
		}
		w.update(func() { delete(w.fault, "named") })
		_, err = r.Resolve(t.Context(), "unicorns")
		checkKind(t, err, discovery.ErrNotServed)
		sleep(10 * time.Minute)
		if source := r.Status().APIServices; source.State != discovery.SourceAbsent {
			t.Errorf("with the named groups: %s: %v", source.State, source.Err)
		}
	})
}
