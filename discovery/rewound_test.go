package discovery_test

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
)

// After a restore of etcd, a watch from a lost version is silent, and a list of that version waits. The documents are the same: only the UID of
// the CRD shows that it is another type.
func TestRun_NoticesThatEtcdWasRestored(t *testing.T) {
	for name, lasted := range map[string]time.Duration{"after a watch that worked": time.Minute, "after a short watch": time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.update(func() { w.setCRD(gadget("v1")) })
				sleep(10 * time.Second)
				runFor(t, r)
				sleep(time.Minute)
				uid := func() types.UID {
					res, err := r.Resolve(t.Context(), "gadgets.v1.example.org")
					if err != nil {
						t.Fatal(err)
					}
					return res.CRDUID
				}
				if got := uid(); got != "1" {
					t.Fatalf("UID = %q", got)
				}
				var restore func()
				w.update(func() {
					objs, rvs, rv, events := maps.Clone(w.crds.objs), maps.Clone(w.crds.rvs), w.rv, len(w.crds.log)
					restore = func() {
						w.crds.objs, w.crds.rvs, w.rv, w.crds.log = objs, rvs, rv, w.crds.log[:events]
						w.snapshot()
						w.endWatches(w.crds, false)
						w.endWatches(w.apis, false)
					}
					w.dropCRD(gadgetsCRD)
					again := gadget("v1")
					again.uid = "2"
					w.setCRD(again)
				})
				sleep(time.Minute)
				if got := uid(); got != "2" {
					t.Fatalf("UID = %q", got)
				}
				w.update(func() { w.endWatches(w.crds, false) })
				sleep(lasted)
				w.update(restore)
				sleep(2 * time.Second)
				if got := uid(); got != "1" {
					t.Errorf("UID after the restore = %q, want the old one", got)
				}
				w.update(func() {
					w.timely = true
					w.endWatches(w.crds, false)
					clear(w.counts)
				})
				sleep(time.Hour)
				w.update(func() {
					if got := w.counts["crds.list"]; got > 2 {
						t.Errorf("%d lists in the hour after: %v", got, w.counts)
					}
				})
			})
		})
	}
}
