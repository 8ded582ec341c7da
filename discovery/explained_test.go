package discovery_test

import (
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// A version that a CRD does not have is not served because of that, and not because the CRD is not established.
func TestResolve_ACRDThatIsNotEstablishedExplainsItsOwnVersionsOnly(t *testing.T) {
	for name, runs := range map[string]bool{"without a run": false, "with a run": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.update(func() {
					c := gadget("v1")
					c.established = false
					w.setCRD(c)
				})
				if runs {
					runFor(t, r)
				}
				sleep(time.Minute)
				_, err := r.ResolveGVR(t.Context(), gadgets)
				checkKind(t, err, discovery.ErrNotEstablished)
				_, err = r.ResolveGR(t.Context(), gadgets.GroupResource())
				checkKind(t, err, discovery.ErrNotEstablished)
				_, err = r.ResolveGVR(t.Context(), gadgets.GroupResource().WithVersion("v2"))
				checkKind(t, err, discovery.ErrNotServed)
			})
		})
	}
}

// Requests for the type go to the other server, which does not have it. The CRD is established, and is never served.
func TestResolve_ACRDWhoseGroupVersionAnotherServerServesIsNotServed(t *testing.T) {
	for name, runs := range map[string]bool{"without a run": false, "with a run": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.update(func() {
					w.serveByService("others")
					w.setCRD(gadget("v1"))
				})
				if runs {
					runFor(t, r)
				}
				sleep(time.Minute)
				_, err := r.ResolveGVR(t.Context(), gadgets)
				checkKind(t, err, discovery.ErrNotServed)
				_, err = r.ResolveGR(t.Context(), gadgets.GroupResource())
				checkKind(t, err, discovery.ErrNotServed)
			})
		})
	}
}

// A CRD decides only about the versions that the API server itself serves. The resources of another server change without an event.
func TestRun_ACRDDoesNotDecideAboutAVersionOfAnotherServer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		v2 := gadgets.GroupResource().WithVersion("v2")
		runFor(t, r)
		sleep(time.Minute)
		w.update(func() {
			w.backends["v2.example.org"] = []string{"others"}
			w.setAPI(&apiServiceObject{name: "v2.example.org", service: true, available: true})
			w.lags = []time.Duration{5 * time.Second} // so that the CRD is read
			w.setCRD(gadget("v1"))
		})
		sleep(time.Minute)
		w.update(func() {
			if w.counts["crds.get"] == 0 {
				t.Error("the CRD has not been read")
			}
			w.lags = []time.Duration{0}
			w.backends["v2.example.org"] = []string{"gadgets"}
			w.snapshot()
		})
		if _, err := r.ResolveGVR(t.Context(), v2); err != nil {
			t.Error(err)
		}
	})
}
