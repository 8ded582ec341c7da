package discovery_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// The document of a group version may list the type of a deleted CRD for a while. It counts no more than the document of all groups does.
// Otherwise, an informer that asks after the event that the type is removed would take it as served again, without a CRD that can be deleted.
func TestRun_AGroupVersionThatListsADeletedCRDIsOutOfDate(t *testing.T) {
	t.Run("the group was stale", func(t *testing.T) {
		s, crds := crdServer(t, define(gadgetsCRD, "1"))
		s.serve(coreGroup, stale(gadgetGroup, "v1"))
		s.answer("/apis/example.org/v1", say("application/json", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.org/v1","resources":[
			{"name":"gadgets","singularName":"gadget","kind":"Gadget","namespaced":true,"verbs":["list","watch"]}]}`))
		r := run(t, s, never())
		if _, err := r.Validate(t.Context(), gadgets); err != nil {
			t.Fatalf("before: %v", err)
		}
		l := listen(t, r)
		crds.remove(gadgetsCRD)
		l.wants("Removed gadgets.v1.example.org (CRDDeleted)")
		res, err := r.Validate(t.Context(), gadgets)
		if !errors.Is(err, discovery.ErrInconclusive) {
			t.Errorf("Validate: %+v, %v", res, err)
		}
	})
	t.Run("CRDs have been listed, and are not watched yet", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			next, stop := started(t, w, r, func() { w.setCRD(gadget("v1")) })
			defer stop()
			w.update(func() {
				w.lags = []time.Duration{time.Minute}
				w.fault["crds.list"], w.fault["crds.watch"] = "500", "hang"
				w.endWatches(w.crds, true)
			})
			sleep(time.Second)
			w.update(func() { w.fault["crds.list"] = ""; w.dropCRD(gadgetsCRD) })
			sleep(5 * time.Second) // it is listed again after a pause
			wantEvents(t, next, "Removed gadgets.v1.example.org (CRDDeleted)")
			res, err := r.Validate(t.Context(), gadgets)
			if !errors.Is(err, discovery.ErrInconclusive) {
				t.Errorf("Validate: %+v, %v", res, err)
			}
			sleep(2 * time.Minute)
			if res, err = r.Validate(t.Context(), gadgets); !errors.Is(err, discovery.ErrNotServed) {
				t.Errorf("later, Validate: %+v, %v", res, err)
			}
		})
	})
	t.Run("another server serves the type now", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			_, stop := started(t, w, r, func() { w.setCRD(gadget("v1")) })
			defer stop()
			w.update(func() { w.dropCRD(gadgetsCRD) })
			sleep(10 * time.Second)
			w.update(func() {
				w.fault["named"] = "503"
				w.backends["v1.example.org"] = []string{"gadgets"}
				w.setAPI(&apiServiceObject{name: "v1.example.org", service: true, available: true})
			})
			sleep(time.Second)
			if _, err := r.Validate(t.Context(), gadgets); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	})
}
