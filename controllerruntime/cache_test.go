package controllerruntime

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// forbidden makes a cluster reject lists and watches of gvr.
func forbidden(gvr schema.GroupVersionResource) fakecluster.Interceptor {
	return func(_ context.Context, request fakecluster.Request) error {
		if request.GVR != gvr || request.Verb != "list" && request.Verb != "watch" {
			return nil
		}
		return apierrors.NewForbidden(gvr.GroupResource(), "", errors.New("no permission"))
	}
}

// reasonOf returns the reason in err.
func reasonOf(err error) status.Reason {
	if notSynced, is := errors.AsType[*status.NotSyncedError](err); is {
		return notSynced.Reason
	}
	return ""
}

func TestCache_ReadsBeforeStartAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := makeCache(t, fakecluster.New(widgetType), cache.Options{})
		var notStarted *cache.ErrCacheNotStarted
		if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, &Widget{}); !errors.As(err, &notStarted) {
			t.Errorf("Get: %v", err)
		}
		if err := c.List(t.Context(), &WidgetList{}); !errors.As(err, &notStarted) {
			t.Errorf("List: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if c.WaitForCacheSync(ctx) {
			t.Error("the cache has synced")
		}
	})
}

func TestCache_StartsOnce(t *testing.T) {
	in(t, served{}, cache.Options{}, nil, func(w *world) {
		if err := w.cache.Start(w.ctx); !errors.Is(err, errStarted) {
			t.Errorf("second Start: %v", err)
		}
	})
}

func TestCache_WaitEndsWithTheReason(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, nil, func(w *world) {
		w.Intercept(forbidden(widgets))
		begun := time.Now()
		_, err := w.cache.GetInformer(w.within(), &Widget{})
		if !apierrors.IsTimeout(err) || reasonOf(err) != status.ReasonForbidden {
			t.Errorf("GetInformer: %v", err)
		}
		if got := time.Since(begun); got != time.Minute {
			t.Errorf("it took %v", got)
		}
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		if err := w.cache.Get(ctx, client.ObjectKey{}, &Widget{}); !apierrors.IsTimeout(err) || reasonOf(err) != status.ReasonForbidden {
			t.Errorf("Get: %v", err)
		}
	})
}

// slowContext is a context whose methods take two seconds.
type slowContext struct{ context.Context } //nolint:containedctx // it is one

func (c slowContext) Done() <-chan struct{} {
	time.Sleep(2 * time.Second)
	return c.Context.Done()
}

func (c slowContext) Err() error {
	time.Sleep(2 * time.Second)
	return c.Context.Err()
}

// As in controller-runtime. The informer syncs while the read returns.
func TestCache_AReadWhoseContextHasEndedDoesNotWait(t *testing.T) {
	for name, options := range map[string][]Option{"default": nil, "fail-fast": {WithFailFast()}, "absent": {WithAllowAbsent()}} {
		t.Run(name, func(t *testing.T) {
			in(t, served{widgetType}, cache.Options{}, options, func(w *world) {
				w.Intercept(func(context.Context, fakecluster.Request) error {
					time.Sleep(time.Second)
					return nil
				})
				i := w.informer(&Widget{}, cache.BlockUntilSynced(false))
				ctx, cancel := context.WithCancel(w.ctx)
				cancel()
				if err := w.cache.List(slowContext{ctx}, &WidgetList{}); !apierrors.IsTimeout(err) || !errors.Is(err, context.Canceled) || !i.HasSynced() {
					t.Errorf("List: %v; synced: %t", err, i.HasSynced())
				}
				if err := w.cache.List(ctx, &WidgetList{}); err != nil {
					t.Errorf("List after the informer has synced: %v", err)
				}
			})
		})
	}
}

func TestCache_FailFastReturnsALastingReasonAtOnce(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithFailFast()}, func(w *world) {
		w.Intercept(forbidden(widgets))
		begun := time.Now()
		err := w.cache.List(w.within(), &WidgetList{})
		if apierrors.IsTimeout(err) || reasonOf(err) != status.ReasonForbidden {
			t.Errorf("List: %v", err)
		}
		if got := time.Since(begun); got > time.Second {
			t.Errorf("it took %v", got)
		}
	})
}

func TestCache_BrokenKindDoesNotStopOthers(t *testing.T) {
	in(t, served{widgetType, blockType}, cache.Options{}, nil, func(w *world) {
		w.Intercept(forbidden(blocks))
		broken := w.informer(newUnstructured(blockKind), cache.BlockUntilSynced(false))
		w.informer(&Widget{})
		if !w.cache.WaitForCacheSync(w.within()) {
			t.Error("WaitForCacheSync waits for the broken kind")
		}
		if broken.HasSynced() {
			t.Error("the broken kind has synced")
		}
	})
}

// A kind that hangs has no lasting reason.
func TestCache_WaitForCacheSyncWaitsForASlowKind(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, nil, func(w *world) {
		w.Intercept(func(ctx context.Context, _ fakecluster.Request) error {
			<-ctx.Done()
			return nil
		})
		w.informer(&Widget{}, cache.BlockUntilSynced(false))
		if w.cache.WaitForCacheSync(w.within()) {
			t.Error("WaitForCacheSync does not wait")
		}
	})
}

func TestCache_KindGoesAndComesBack(t *testing.T) {
	in(t, served{widgetType, blockType}, cache.Options{}, nil, func(w *world) {
		w.create(widgets, "ns", "a", 1)
		got, _ := listen(t, w.informer(&Widget{}))
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/a"}, got.take()); diff != "" {
			t.Error(diff)
		}
		w.Withdraw(widgets)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"delete *controllerruntime.Widget ns/a"}, got.take()); diff != "" {
			t.Error(diff)
		}
		if names := w.names(); len(names) > 0 {
			t.Errorf("widgets of a kind that is gone: %v", names)
		}
		w.Serve(widgetType)
		w.create(widgets, "ns", "b", 1)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/b"}, got.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"b"}, w.names()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCache_AbsentKindIsAnErrorByDefault(t *testing.T) {
	in(t, served{blockType}, cache.Options{}, nil, func(w *world) {
		if _, err := w.cache.GetInformer(w.ctx, &Widget{}); !meta.IsNoMatchError(err) {
			t.Errorf("GetInformer: %v", err)
		}
	})
}

func TestCache_AbsentKindIsEmptyUntilItIsServed(t *testing.T) {
	in(t, served{blockType}, cache.Options{}, []Option{WithAllowAbsent()}, func(w *world) {
		i := w.informer(&Widget{})
		got, registration := listen(t, i)
		if !i.HasSynced() || !registration.HasSynced() || !w.cache.WaitForCacheSync(w.within()) {
			t.Error("an absent kind has not synced")
		}
		for _, checker := range []<-chan struct{}{i.HasSyncedChecker().Done(), registration.HasSyncedChecker().Done()} {
			synctest.Wait()
			select {
			case <-checker:
			default:
				t.Error("a checker is not done")
			}
		}
		if err := w.cache.Get(w.ctx, client.ObjectKey{Namespace: "ns", Name: "a"}, &Widget{}); !apierrors.IsNotFound(err) {
			t.Errorf("Get: %v", err)
		}
		w.Serve(widgetType)
		w.create(widgets, "ns", "a", 1)
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/a"}, got.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"a"}, w.names()); diff != "" {
			t.Error(diff)
		}
		if err := i.RemoveEventHandler(registration); err != nil {
			t.Error(err)
		}
		w.create(widgets, "ns", "b", 1)
		if events := got.take(); len(events) > 0 {
			t.Errorf("events of a removed handler: %v", events)
		}
	})
}

func TestCache_RemoveInformerFreesEverything(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, nil, func(w *world) {
		i := w.informer(&Widget{})
		got, _ := listen(t, i)
		if err := w.cache.RemoveInformer(w.ctx, &Widget{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := w.OpenWatches(widgets); n > 0 || !i.IsStopped() || len(w.cache.Factory().Status()) > 0 {
			t.Errorf("after the removal: %d watches, stopped: %v, %v", n, i.IsStopped(), w.cache.Factory().Status())
		}
		w.create(widgets, "ns", "a", 1)
		if events := got.take(); len(events) > 0 {
			t.Errorf("events after the removal: %v", events)
		}
		if diff := cmp.Diff([]string{"a"}, w.names()); diff != "" { // a new informer
			t.Error(diff)
		}
	})
}

// Another form or a lease may keep the informer. For its user, it has stopped: handlers and indexes can't be added.
func TestRemoveInformer_StopsTheInformerAlsoIfAnotherLeaseContinues(t *testing.T) {
	for name, object := range map[string]client.Object{"default": newUnstructured(widgetKind), "packed": &Widget{}} {
		t.Run(name, func(t *testing.T) {
			in(t, served{widgetType}, cache.Options{}, caches[name], func(w *world) {
				other := w.acquire()
				defer other.Release()
				i := w.informer(object)
				if i.IsStopped() {
					t.Error("a running informer has stopped")
				}
				if err := w.cache.RemoveInformer(w.ctx, object); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if !i.IsStopped() {
					t.Error("a removed informer has not stopped")
				}
				if _, err := i.AddEventHandler(&recorder{}); !errors.Is(err, dynamicinformer.ErrReleased) {
					t.Errorf("AddEventHandler: %v", err)
				}
				if err := i.AddIndexers(toolscache.Indexers{"late": toolscache.MetaNamespaceIndexFunc}); !errors.Is(err, dynamicinformer.ErrReleased) {
					t.Errorf("AddIndexers: %v", err)
				}
				if n := w.OpenWatches(widgets); n != 1 || other.Informer().IsStopped() {
					t.Errorf("%d watches: the informer was not shared, or the other lease has lost it", n)
				}
			})
		})
	}
}

func TestCache_ConcurrentReadsShareAnInformer(t *testing.T) {
	in(t, served{widgetType}, cache.Options{DefaultNamespaces: map[string]cache.Config{"ns": {}}}, nil, func(w *world) {
		done := make(chan error)
		for range 10 {
			go func() { done <- w.cache.List(w.ctx, &WidgetList{}) }()
		}
		for range 10 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := len(w.Requests("watch", widgets)); n != 1 {
			t.Errorf("%d watches", n)
		}
	})
}

func TestCache_ReaderFailsOnMissingInformer(t *testing.T) {
	in(t, served{widgetType}, cache.Options{ReaderFailOnMissingInformer: true}, nil, func(w *world) {
		var notCached *cache.ErrResourceNotCached
		if err := w.cache.List(w.ctx, &WidgetList{}); !errors.As(err, &notCached) || notCached.GVK != widgetKind {
			t.Errorf("List: %v", err)
		}
		w.informer(&Widget{})
		if err := w.cache.List(w.ctx, &WidgetList{}); err != nil {
			t.Error(err)
		}
	})
}

// A watch-list that fails says nothing about the list that follows.
func TestCache_FailFastWaitsForTheListAfterAWatch(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithFailFast()}, func(w *world) {
		w.create(widgets, "ns", "a", 1)
		w.Intercept(func(ctx context.Context, request fakecluster.Request) error {
			if request.Verb == "watch" {
				return apierrors.NewForbidden(request.GVR.GroupResource(), "", errors.New("no watch"))
			}
			return sleep(ctx, time.Second) // the status has the failed watch meanwhile
		})
		if diff := cmp.Diff([]string{"a"}, w.names()); diff != "" {
			t.Error(diff)
		}
	})
}

// A server may respond with 404 for some seconds after it has established a CustomResourceDefinition.
func TestCache_AbsentKindThatIsServedSoonIsNotEmpty(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithAllowAbsent()}, func(w *world) {
		w.create(widgets, "ns", "a", 1)
		begin := time.Now()
		w.Intercept(func(_ context.Context, request fakecluster.Request) error {
			if time.Since(begin) < 3*time.Second {
				return apierrors.NewNotFound(request.GVR.GroupResource(), "")
			}
			return nil
		})
		i := w.informer(&Widget{}, cache.BlockUntilSynced(false))
		synctest.Wait()
		if i.HasSynced() {
			t.Error("it has synced before its first list")
		}
		if diff := cmp.Diff([]string{"a"}, w.names()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCache_AbsentKindIsNoFailure(t *testing.T) {
	in(t, served{blockType}, cache.Options{}, []Option{WithAllowAbsent(), WithFailFast()}, func(w *world) {
		if diff := cmp.Diff([]string{}, w.names()); diff != "" {
			t.Error(diff)
		}
	})
}

// lateWatch is a lease on the informer of an absent kind that is served while WaitForSync returns, before a loop over Watch begins.
type lateWatch struct{ lease }

func (l lateWatch) WaitForSync(context.Context, ...dynamicinformer.WaitOption) error {
	return &status.NotSyncedError{Reason: status.ReasonNotFound}
}

func (l lateWatch) Status() status.Informer {
	return status.Informer{State: status.StateStarting, Reason: status.ReasonSyncing}
}

func (l lateWatch) Watch(ctx context.Context) iter.Seq[status.Informer] {
	return func(func(status.Informer) bool) { <-ctx.Done() }
}

func TestCache_AbsentKindThatIsServedMeanwhileIsNoFailure(t *testing.T) {
	in(t, served{blockType}, cache.Options{}, []Option{WithAllowAbsent(), WithFailFast()}, func(w *world) {
		w.informer(&Widget{})
		for _, i := range w.cache.informers {
			i.lease = lateWatch{i.lease}
		}
		if diff := cmp.Diff([]string{}, w.names()); diff != "" {
			t.Error(diff)
		}
	})
}

// removedWhileWaiting is a lease on the informer of an absent kind that is removed before WaitForSync returns.
type removedWhileWaiting struct{ lateWatch }

func (l removedWhileWaiting) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (l removedWhileWaiting) WaitForSync(ctx context.Context, opts ...dynamicinformer.WaitOption) error {
	<-ctx.Done()
	return l.lateWatch.WaitForSync(ctx, opts...)
}

func TestCache_AbsentKindIsNoFailureIfItsInformerIsRemoved(t *testing.T) {
	in(t, served{blockType}, cache.Options{}, []Option{WithAllowAbsent(), WithFailFast()}, func(w *world) {
		w.informer(&Widget{})
		for _, i := range w.cache.informers {
			i.lease = removedWhileWaiting{lateWatch{i.lease}}
		}
		if diff := cmp.Diff([]string{}, w.names()); diff != "" {
			t.Error(diff)
		}
	})
}

// brieflyServed is a lease on the informer of an absent kind that is served for a moment after the first status of Watch.
type brieflyServed struct{ lease }

func (l brieflyServed) Status() status.Informer {
	return status.Informer{State: status.StateStarting, Reason: status.ReasonSyncing}
}

func TestCache_HandlerOfAnAbsentKindThatIsBrieflyServedCountsAsSynced(t *testing.T) {
	in(t, served{blockType}, cache.Options{}, []Option{WithAllowAbsent()}, func(w *world) {
		i := w.informer(&Widget{})
		for _, i := range w.cache.informers {
			i.lease = brieflyServed{i.lease}
		}
		_, registration := listen(t, i)
		done := registration.HasSyncedChecker().Done()
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Error("the handler has not synced")
		}
	})
}

// That the informer was removed later has no effect.
func TestCache_NamespacesThatHaveSyncedStayDone(t *testing.T) {
	opts := cache.Options{DefaultNamespaces: map[string]cache.Config{"one": {}, "two": {}}}
	in(t, served{widgetType}, opts, nil, func(w *world) {
		var checkers []toolscache.DoneChecker
		for range 20 {
			checkers = append(checkers, w.informer(&Widget{}).HasSyncedChecker())
		}
		if err := w.cache.RemoveInformer(w.ctx, &Widget{}); err != nil {
			t.Fatal(err)
		}
		for _, checker := range checkers {
			checker.Done()
			synctest.Wait()
			if !toolscache.IsDone(checker) {
				t.Fatal("a checker is not done")
			}
		}
	})
}

// The object of a call may have content that apimachinery can't copy.
func TestCache_ObjectsOfCallsAreNotKept(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, nil, func(w *world) {
		object := newUnstructured(widgetKind)
		object.Object["spec"] = []map[string]any{{"a": 1}}
		w.informer(object)
	})
}

// A lease of the program with other options does not keep the cache from reading.
func TestCache_LeaseWithOtherOptions(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, nil, func(w *world) {
		w.create(widgets, "ns", "a", 1)
		lease, err := w.cache.Factory().Acquire(w.ctx, widgets, dynamicinformer.WithLabelSelector("name=b"))
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release()
		if err := w.cache.Get(w.within(), client.ObjectKey{Namespace: "ns", Name: "a"}, newUnstructured(widgetKind)); err != nil {
			t.Error(err)
		}
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The program has a lease on an informer that does not sync. Waits for the cache's own one end when it is removed.
func TestRemoveInformer_EndsWaitsAlsoIfAnotherLeaseContinues(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithAllowAbsent()}, func(w *world) {
		w.Intercept(hanging(""))
		other := w.acquire(dynamicinformer.WithAllowAbsent())
		defer other.Release()
		object := newUnstructured(widgetKind)
		kind := w.watchedBy(object)
		if leases := other.Status().Leases; leases != 2 {
			t.Fatalf("%d leases share the informer, want 2", leases)
		}
		synced := make(chan bool, 1)
		go func() { synced <- kind.settle(w.ctx) }()
		synctest.Wait()
		if err := w.cache.RemoveInformer(w.ctx, object); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-synced:
		default:
			t.Error("WaitForCacheSync waits for an informer that was removed")
			w.Intercept(nil)
			<-synced
		}
	})
}

// watchedBy begins to watch the kind of object, and returns the informer.
func (w *world) watchedBy(object client.Object) *informer {
	w.Helper()
	i, err := w.cache.GetInformer(w.ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	return i.(*view).informer
}
