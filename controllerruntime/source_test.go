package controllerruntime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// acquire returns a lease of the factory of the cache.
func (w *world) acquire(opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
	w.Helper()
	lease, err := w.cache.Factory().Acquire(w.ctx, widgets, opts...)
	if err != nil {
		w.Fatal(err)
	}
	return lease
}

// next returns the name of the next item and its priority; "" if there is none.
func next(queue priorityqueue.PriorityQueue[reconcile.Request]) (string, int) {
	synctest.Wait()
	if queue.Len() == 0 {
		return "", 0
	}
	item, priority, _ := queue.GetWithPriority()
	queue.Done(item)
	return item.Name, priority
}

func TestSource_ObjectsOfTheFirstListHaveALowPriority(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, nil, func(w *world) {
		w.create(widgets, "ns", "a", 1)
		queue := priorityqueue.New[reconcile.Request]("test")
		defer queue.ShutDown()
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		notB := predicate.NewTypedPredicateFuncs(func(object *unstructured.Unstructured) bool { return object.GetName() != "b" })
		s := Source(w.acquire(), &handler.TypedEnqueueRequestForObject[*unstructured.Unstructured]{}, notB)
		if err := s.WaitForSync(ctx); !errors.Is(err, errSource) {
			t.Errorf("WaitForSync before Start: %v", err)
		}
		if err := errors.Join(s.Start(ctx, queue), s.WaitForSync(ctx)); err != nil {
			t.Fatal(err)
		}
		if name, priority := next(queue); name != "a" || priority != handler.LowPriority {
			t.Errorf("the object of the list is %q with priority %d", name, priority)
		}
		w.create(widgets, "ns", "b", 1)
		w.create(widgets, "ns", "c", 1)
		if name, priority := next(queue); name != "c" || priority != 0 {
			t.Errorf("the created object is %q with priority %d", name, priority)
		}
		if err := s.Start(ctx, queue); !errors.Is(err, errSource) {
			t.Errorf("second Start: %v", err)
		}
		cancel()
		synctest.Wait()
		w.create(widgets, "ns", "d", 1)
		if name, _ := next(queue); name != "" {
			t.Errorf("after the end of the controller: %q", name)
		}
	})
}

func TestSource_DoesNotWaitForAnAbsentType(t *testing.T) {
	in(t, served{blockType}, cache.Options{}, nil, func(w *world) {
		queue := priorityqueue.New[reconcile.Request]("test")
		defer queue.ShutDown()
		s := Source(w.acquire(dynamicinformer.WithAllowAbsent()), handler.TypedFuncs[client.Object, reconcile.Request]{
			CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
			},
		})
		if err := errors.Join(s.Start(w.ctx, queue), s.WaitForSync(w.within())); err != nil {
			t.Fatal(err)
		}
		w.Serve(widgetType)
		w.create(widgets, "ns", "a", 1)
		time.Sleep(time.Hour)
		if name, _ := next(queue); name != "a" {
			t.Errorf("the object is %q", name)
		}
	})
}

func TestSource_WaitEndsWithTheReason(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, nil, func(w *world) {
		w.Intercept(forbidden(widgets))
		queue := priorityqueue.New[reconcile.Request]("test")
		defer queue.ShutDown()
		s := Source(w.acquire(), &handler.TypedEnqueueRequestForObject[client.Object]{})
		if err := s.Start(w.ctx, queue); err != nil {
			t.Fatal(err)
		}
		if err := s.WaitForSync(w.within()); !errors.Is(err, context.DeadlineExceeded) || reasonOf(err) != status.ReasonForbidden {
			t.Errorf("WaitForSync: %v", err)
		}
		canceled, cancel := context.WithCancel(w.ctx)
		cancel()
		if err := s.WaitForSync(canceled); err != nil {
			t.Errorf("WaitForSync of a controller that ends: %v", err)
		}
	})
}

// Later, neither the end of ctx nor the release of the lease is an error.
func TestSource_HasSynced(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, nil, func(w *world) {
		queue := priorityqueue.New[reconcile.Request]("test")
		defer queue.ShutDown()
		lease := w.acquire()
		s := Source(lease, &handler.TypedEnqueueRequestForObject[client.Object]{})
		if err := errors.Join(s.Start(w.ctx, queue), s.WaitForSync(w.within())); err != nil {
			t.Fatal(err)
		}
		late, cancel := context.WithTimeout(w.ctx, 0)
		defer cancel()
		check := func(what string) {
			for range 20 {
				if err := s.WaitForSync(late); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		check("late")
		lease.Release()
		<-lease.Done()
		check("released")
	})
}

func TestRunnable_RunsUntilTheManagerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		factory, err := dynamicinformer.New(cluster)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- Runnable(factory).Start(ctx) }()
		lease, err := factory.Acquire(ctx, widgets)
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.WaitForSync(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-ended; err != nil || cluster.OpenWatches(widgets) > 0 {
			t.Errorf("Start: %v, with %d watches", err, cluster.OpenWatches(widgets))
		}
	})
}

func TestMapperProvider_IsTheResolversMapper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver, err := discovery.NewFromDiscovery(fakecluster.New(widgetType).Discovery())
		if err != nil {
			t.Fatal(err)
		}
		mapper, err := MapperProvider(resolver)(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		mapping, err := mapper.RESTMapping(widgetKind.GroupKind(), "v1")
		if err != nil || mapping.Resource != widgets || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			t.Errorf("RESTMapping: %v, %v", mapping, err)
		}
		if _, err := MapperProvider(nil)(nil, nil); !errors.Is(err, errNoResolver) {
			t.Errorf("without a resolver: %v", err)
		}
	})
}
