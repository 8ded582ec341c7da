package dynamicinformer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
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

// Watch has the namespaces of a selector, and which of them are being deleted, as soon as the status has them.
func TestWatch_HasTheNamespacesOfASelector(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		labelNamespace(t, cluster, "a", "red")
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaceSelector("team=red"))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var last status.Informer
		statuses, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			for last = range l.Watch(ctx) {
				statuses++
			}
		}()
		client := cluster.Resource(namespaceType.GVR)
		obj, err := client.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now := metav1.Now()
		obj.SetDeletionTimestamp(&now)
		if _, err := client.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := last.Namespaces; len(n) != 1 || !n[0].Terminating {
			t.Errorf("while a is being deleted: %+v, status %+v", n, l.Status().Namespaces)
		}
		before := statuses
		labelNamespace(t, cluster, "a", "red")
		synctest.Wait()
		if statuses != before {
			t.Errorf("%d statuses without a change", statuses-before)
		}
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR == widgets {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		labelNamespace(t, cluster, "b", "red")
		synctest.Wait()
		if n := last.Namespaces; len(n) != 2 || n[1].Reason != status.ReasonSyncing {
			t.Errorf("while b is being listed: %+v, status %+v", n, l.Status().Namespaces)
		}
		cluster.Intercept(nil)
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
