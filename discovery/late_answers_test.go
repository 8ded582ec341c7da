package discovery_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

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
