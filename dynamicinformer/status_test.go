package dynamicinformer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// names returns the resources in f's status, in order.
func names(f *dynamicinformer.Factory) (all []string) {
	for _, s := range f.Status() {
		all = append(all, s.GVR.Resource)
	}
	return all
}

// Watch has the leases of an informer when another one joins or leaves, and ForResource.
func TestWatch_HasTheUsersOfTheInformer(t *testing.T) {
	inLeases(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets)
		synctest.Wait()
		ctx, cancel := context.WithCancel(in.Context())
		var last status.Informer
		statuses, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			for last = range l.Watch(ctx) {
				statuses++
			}
		}()
		check := func(when string, leases int, pinned bool) {
			in.Helper()
			synctest.Wait()
			if last.Leases != leases || len(last.Owners) != leases || last.Pinned != pinned {
				in.Errorf("%s: %d leases, owners %+v, pinned: %v", when, last.Leases, last.Owners, last.Pinned)
			}
		}
		check("at first", 1, false)
		other := acquire(in.T, in.factory, widgets, dynamicinformer.WithLeaseName("other"))
		check("another lease", 2, false)
		other.Release()
		check("released", 1, false)
		in.factory.ForResource(widgets)
		check("ForResource", 1, true)
		before := statuses
		in.factory.ForResource(widgets)
		synctest.Wait()
		if statuses != before {
			in.Errorf("%d statuses without a change", statuses-before)
		}
		cancel()
		<-ended
	})
}

// Informers are created and released between calls of Status, and the order is kept.
func TestStatus_HasTheCurrentInformers(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, f := in.T, in.factory
		check := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, names(f)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		check("at first")
		l := acquire(t, f, widgets)
		check("a lease", "widgets")
		check("asked again", "widgets")
		f.ForResource(gadgets)
		check("another one", "gadgets", "widgets")
		l.Release()
		check("released", "gadgets")

		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { names(f) })
			all.Go(func() {
				l, err := f.Acquire(t.Context(), widgets)
				if err != nil {
					t.Error(err)
					return
				}
				names(f)
				l.Release()
			})
		}
		all.Wait()
		check("when all have released", "gadgets")
	})
}
