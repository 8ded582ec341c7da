package controllerruntime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/form"
)

func TestNewInformer_CreatesTheInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		c := makeCache(t, cluster, cache.Options{DefaultNamespaces: map[string]cache.Config{"ns": {}}})
		c.made = &maker{new: toolscache.NewSharedIndexInformer, clients: form.Clients{Own: cluster}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &world{T: t, Cluster: cluster, cache: c, ctx: ctx}
		before := w.informer(&Widget{}) // it runs from Start on
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		w.create(widgets, "ns", "a", 1)
		w.create(widgets, "other", "b", 1)
		if diff := cmp.Diff([]string{"a"}, w.names()); diff != "" {
			t.Error(diff)
		}
		structured, _ := listen(t, before)
		tree, _ := listen(t, w.informer(newUnstructured(widgetKind)))
		structured.take()
		tree.take()
		w.create(widgets, "ns", "c", 1)
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/c"}, structured.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"add *unstructured.Unstructured ns/c"}, tree.take()); diff != "" {
			t.Error(diff)
		}
		if err := c.RemoveInformer(ctx, &Widget{}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !before.IsStopped() || cluster.OpenWatches(widgets) != 1 {
			t.Errorf("after the removal, %d watches", cluster.OpenWatches(widgets))
		}
		cancel()
		err := <-ended
		synctest.Wait()
		if err != nil || cluster.OpenWatches(widgets) != 0 {
			t.Errorf("Start: %v, %d watches", err, cluster.OpenWatches(widgets))
		}
	})
}

// inNewInformer runs a test in a bubble. The cache has options, creates its informers with NewInformer, and runs after w.start.
func inNewInformer(t *testing.T, types served, options []Option, test func(w *world, start func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(types...)
		c := makeCache(t, cluster, cache.Options{}, options...)
		c.made = &maker{new: toolscache.NewSharedIndexInformer, clients: form.Clients{Own: cluster}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		test(&world{T: t, Cluster: cluster, cache: c, ctx: ctx}, func() {
			go func() { ended <- c.Start(ctx) }()
			synctest.Wait()
		})
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
}

// A kind that is absent at its first use has an informer of the factory.
func TestNewInformer_AbsentKindIsEmptyUntilItIsServed(t *testing.T) {
	inNewInformer(t, served{blockType}, []Option{WithAllowAbsent()}, func(w *world, start func()) {
		start()
		key := client.ObjectKey{Namespace: "ns", Name: "a"}
		if err := w.cache.Get(w.within(), key, &Widget{}); !apierrors.IsNotFound(err) {
			w.Errorf("Get of an absent kind: %v", err)
		}
		w.Serve(widgetType)
		w.create(widgets, "ns", "a", 1)
		time.Sleep(time.Hour)
		if err := w.cache.Get(w.within(), key, &Widget{}); err != nil {
			w.Errorf("Get: %v", err)
		}
	})
}

// A program may acquire leases on the factory of the cache.
func TestNewInformer_FactoryRuns(t *testing.T) {
	inNewInformer(t, served{widgetType}, nil, func(w *world, start func()) {
		lease := w.acquire()
		defer lease.Release()
		start()
		if err := lease.WaitForSync(w.within()); err != nil {
			w.Error(err)
		}
	})
}

// A program may use the object of a call again, for another kind, before the informer runs.
func TestNewInformer_ObjectsOfCallsAreNotKept(t *testing.T) {
	inNewInformer(t, served{widgetType, blockType}, nil, func(w *world, start func()) {
		object := newUnstructured(widgetKind)
		got, _ := listen(t, w.informer(object))
		object.SetGroupVersionKind(blockKind)
		start()
		w.create(widgets, "ns", "a", 1)
		if diff := cmp.Diff([]string{"add *unstructured.Unstructured ns/a"}, got.take()); diff != "" {
			t.Error(diff)
		}
	})
}
