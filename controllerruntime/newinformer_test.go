package controllerruntime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
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

// NewInformer may limit the requests of its informer. The selectors of the cache come before those.
func TestNewInformer_MayHaveSelectorsOfItsOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		opts cache.Options
		want []string
	}{
		"none of the cache": {want: []string{"a"}},
		"one of the cache":  {opts: cache.Options{DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"name": "b"})}, want: []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				c := makeCache(t, cluster, tc.opts)
				c.made = &maker{new: labeledA, clients: form.Clients{Own: cluster}}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- c.Start(ctx) }()
				w := &world{T: t, Cluster: cluster, cache: c, ctx: ctx}
				w.create(widgets, "ns", "a", 1)
				got, _ := listen(t, w.informer(&Widget{}))
				w.create(widgets, "ns", "b", 1)
				if diff := cmp.Diff(tc.want, w.names()); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/" + tc.want[0]}, got.take()); diff != "" {
					t.Error(diff)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// labeledA returns an informer that requests objects with the label name=a.
func labeledA(lw toolscache.ListerWatcher, object runtime.Object, period time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	from := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.LabelSelector = "name=a"
			return from.ListWithContext(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error) {
			opts.LabelSelector = "name=a"
			return from.WatchWithContext(ctx, opts)
		},
	}, object, period, indexers)
}

// As in other informers, structured objects have no kind, in lists and events.
func TestNewInformer_StructuredObjectsHaveNoKind(t *testing.T) {
	inNewInformer(t, served{widgetType}, nil, func(w *world, start func()) {
		start()
		w.create(widgets, "ns", "a", 1)
		w.informer(&Widget{})
		w.create(widgets, "ns", "b", 1)
		for _, name := range []string{"a", "b"} {
			var got Widget
			if err := w.cache.Get(w.within(), client.ObjectKey{Namespace: "ns", Name: name}, &got, client.UnsafeDisableDeepCopy); err != nil || got.Kind != "" || got.APIVersion != "" {
				w.Errorf("%s: %v, %v", name, err, got.TypeMeta)
			}
		}
	})
}

// A watch ends also if nothing reads its next event: a goroutine that is left fails the bubble.
func TestNewInformer_WatchEndsWhileAnEventWaits(t *testing.T) {
	inNewInformer(t, served{widgetType}, nil, func(w *world, start func()) {
		mapping, err := w.cache.mapper.RESTMapping(widgetKind.GroupKind(), widgetKind.Version)
		if err != nil {
			w.Fatal(err)
		}
		lw := w.cache.made.listerWatcher(key{gvk: widgetKind, form: asStructured}, &Widget{}, &watch{}, mapping)
		events, err := lw.WatchWithContext(w.ctx, metav1.ListOptions{})
		if err != nil {
			w.Fatal(err)
		}
		w.create(widgets, "ns", "a", 1)
		events.Stop()
		start()
	})
}
