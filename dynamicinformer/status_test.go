package dynamicinformer_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// names returns the resources in f's status, in order.
func names(f *dynamicinformer.Factory) (all []string) {
	for _, s := range f.Status() {
		all = append(all, s.GVR.Resource)
	}
	return all
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
