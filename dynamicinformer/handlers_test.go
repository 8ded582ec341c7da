package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// slow is a handler whose calls wait for doneWith.
type slow struct {
	let   chan struct{}
	calls chan string
}

func newSlow() *slow { return &slow{let: make(chan struct{}), calls: make(chan string, 100)} }

func (s *slow) OnAdd(any, bool)   { s.calls <- "add"; <-s.let }
func (s *slow) OnUpdate(any, any) { s.calls <- "update"; <-s.let }
func (s *slow) OnDelete(any)      { s.calls <- "delete"; <-s.let }

// doneWith lets this number of calls return.
func (s *slow) doneWith(calls int) {
	for range calls {
		s.let <- struct{}{}
	}
	synctest.Wait()
}

// handlerOf returns the status of the only handler of l's informer.
func handlerOf(t *testing.T, l *dynamicinformer.Lease) status.Handler {
	t.Helper()
	synctest.Wait()
	all := l.Status().Handlers
	if len(all) != 1 {
		t.Fatalf("handlers: %+v", all)
	}
	return all[0]
}

func TestHandlerStatus_CountsWaitingEvents(t *testing.T) {
	inLeases(t, func(in bubble) {
		for i := range 3 {
			create(in.T, in.cluster, widgets, "ns", fmt.Sprintf("w%d", i))
		}
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithLeaseName("gc"))
		handler := newSlow()
		if _, err := l.AddEventHandler(handler); err != nil {
			in.Fatal(err)
		}
		began := time.Now()
		got := handlerOf(in.T, l)
		want := status.Handler{
			Handler: "github.com/gvrkit/gvrkit/dynamicinformer_test.slow", Lease: "gc", Backlog: 3, RunningSince: began, BehindSince: began,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			in.Errorf("in the first of three calls (-want +got):\n%s", diff)
		}

		time.Sleep(5 * time.Second)
		handler.doneWith(1)
		create(in.T, in.cluster, widgets, "ns", "w3")
		got = handlerOf(in.T, l)
		if got.Delivered != 1 || got.Backlog != 3 || !got.RunningSince.Equal(began.Add(5*time.Second)) || !got.BehindSince.Equal(began.Add(5*time.Second)) {
			in.Errorf("one call later, and with one more object: %+v", got)
		}

		handler.doneWith(3)
		got = handlerOf(in.T, l)
		if got.Delivered != 4 || got.Backlog != 0 || !got.RunningSince.IsZero() || !got.BehindSince.IsZero() {
			in.Errorf("when it has had all: %+v", got)
		}
		l.Release()
	})
}

// A handler gets the objects that exist when it is added. Earlier events do not count.
func TestHandlerStatus_CountsEventsFromItsAdditionOn(t *testing.T) {
	inLeases(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets)
		for i := range 10 {
			create(in.T, in.cluster, widgets, "ns", fmt.Sprintf("w%d", i))
		}
		synctest.Wait()
		for i := range 8 {
			deleteWidget(in.T, in.cluster, fmt.Sprintf("w%d", i))
		}
		synctest.Wait()
		handler := newSlow()
		if _, err := l.AddEventHandler(handler); err != nil {
			in.Fatal(err)
		}
		if got := handlerOf(in.T, l); got.Backlog != 2 {
			in.Errorf("backlog of two objects: %+v", got)
		}
		handler.doneWith(2)
		if got := handlerOf(in.T, l); got.Backlog != 0 || got.Delivered != 2 {
			in.Errorf("after two calls: %+v", got)
		}
		l.Release()
	})
}

// The objects of a watch-list count as events when it is complete.
func TestHandlerStatus_HandlerThatIsAddedDuringTheFirstList(t *testing.T) {
	inLeases(t, func(in bubble) {
		in.cluster.MuteInitialEventsEnd()
		for i := range 5 {
			create(in.T, in.cluster, widgets, "ns", fmt.Sprint(i))
		}
		l := acquire(in.T, in.factory, widgets)
		time.Sleep(time.Second)
		if got := l.Status(); in.cluster.OpenWatches(widgets) != 1 || got.Objects != 0 || got.Listed {
			in.Fatalf("not in a watch-list: %+v", got)
		}
		handler := newSlow()
		if _, err := l.AddEventHandler(handler); err != nil {
			in.Fatal(err)
		}
		if err := l.WaitForSync(in.Context()); err != nil {
			in.Fatal(err)
		}
		if got := handlerOf(in.T, l); got.Backlog != 5 {
			in.Errorf("in the first of five calls: %+v", got)
		}
		l.Release()
		close(handler.let)
	})
}

// A resync is a call, but not an event. It does not decrease the number of waiting events.
func TestHandlerStatus_ResyncsAreNotEvents(t *testing.T) {
	inLeases(t, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "a")
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithResync(10*time.Second))
		synctest.Wait() // during the list, the number of waiting events is an estimate
		handler := newSlow()
		if _, err := l.AddEventHandler(handler); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		handler.doneWith(1)
		time.Sleep(12 * time.Second)
		create(in.T, in.cluster, widgets, "ns", "b")
		synctest.Wait()
		if got := <-handler.calls + <-handler.calls; got != "addupdate" {
			in.Fatalf("calls: %s", got)
		}
		handler.doneWith(1)
		if got := handlerOf(in.T, l); got.Delivered != 2 || got.Backlog != 1 {
			in.Errorf("after a resync, in the call for b: %+v", got)
		}
		handler.doneWith(1)
		l.Release()
		close(handler.let)
	})
}

// A handler without a call in progress has no waiting events. The counters are wrong for a handler
// that is added while the cache is updated.
func TestHandlerStatus_IdleHandlerHasNoBacklog(t *testing.T) {
	inLeases(t, func(in bubble) {
		var hold atomic.Pointer[chan struct{}]
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithTransform(func(obj any) (any, error) {
			if hold := hold.Load(); hold != nil {
				<-*hold
			}
			return obj, nil
		}))
		a := create(in.T, in.cluster, widgets, "ns", "a")
		if err := l.WaitForSync(in.Context()); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		held := make(chan struct{})
		hold.Store(&held)
		if _, err := in.cluster.Resource(widgets).Namespace("ns").Update(in.Context(), a, metav1.UpdateOptions{}); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		handler := newSlow()
		if _, err := l.AddEventHandler(handler); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		hold.Store(nil)
		close(held)
		handler.doneWith(2)
		time.Sleep(2 * time.Second)
		if got := handlerOf(in.T, l); got.Backlog != 0 || !got.BehindSince.IsZero() || got.Delivered != 2 {
			in.Errorf("idle for two seconds: %+v", got)
		}
		create(in.T, in.cluster, widgets, "ns", "b")
		if got := handlerOf(in.T, l); got.Backlog != 1 || got.Delivered != 2 {
			in.Errorf("in the next call: %+v", got)
		}
		handler.doneWith(1)
		l.Release()
	})
}

// An object whose transform fails does not reach handlers, and does not count as waiting.
func TestHandlerStatus_FailedTransformsDoNotWait(t *testing.T) {
	inLeases(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithTransform(func(obj any) (any, error) {
			if u, is := obj.(*unstructured.Unstructured); is && strings.HasPrefix(u.GetName(), "bad") {
				return nil, errors.New("can't be transformed")
			}
			return obj, nil
		}))
		if err := l.WaitForSync(in.Context()); err != nil {
			in.Fatal(err)
		}
		if _, err := l.AddEventHandler(&recorder{}); err != nil {
			in.Fatal(err)
		}
		for i := range 10 {
			time.Sleep(500 * time.Millisecond)
			create(in.T, in.cluster, widgets, "ns", fmt.Sprintf("good%d", i))
			create(in.T, in.cluster, widgets, "ns", fmt.Sprintf("bad%d", i))
		}
		if got := handlerOf(in.T, l); got.Delivered != 10 || got.Backlog != 0 || !got.BehindSince.IsZero() {
			in.Errorf("%+v", got)
		}
	})
}

func TestHandlerStatus_RemovedHandlersHaveNone(t *testing.T) {
	inLeases(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets)
		informer := in.factory.ForResource(widgets).Informer()
		var all []cache.ResourceEventHandlerRegistration
		for _, add := range []func(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error){
			l.AddEventHandler, informer.AddEventHandler, l.Informer().AddEventHandler,
			func(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
				return informer.AddEventHandlerWithResyncPeriod(h, time.Hour)
			},
		} {
			r, err := add(&recorder{})
			if err != nil {
				in.Fatal(err)
			}
			all = append(all, r)
		}
		if got := len(l.Status().Handlers); got != 4 {
			in.Errorf("handlers: %d, want 4", got)
		}
		for i, r := range all {
			by := informer.RemoveEventHandler
			if i%2 == 0 {
				by = l.RemoveEventHandler
			}
			if err := by(r); err != nil {
				in.Error(err)
			}
			if got := len(l.Status().Handlers); got != 3-i {
				in.Errorf("handlers after %d were removed: %d", i+1, got)
			}
		}
		if _, err := l.AddEventHandler(&recorder{}); err != nil {
			in.Fatal(err)
		}
		l.Release()
		synctest.Wait()
		if got := in.factory.Status()[0]; len(got.Handlers) != 0 {
			in.Errorf("handlers of a lease that was released: %+v", got.Handlers)
		}
	})
}

// Client-go's informer holds a lock while it waits for its handlers.
func TestRemoveEventHandler_DuringTheEndOfTheInformer(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	create(t, cluster, widgets, "ns", "a")
	f := newFactory(t, cluster)
	informer := f.ForResource(widgets).Informer()
	ctx, stop := context.WithCancel(t.Context())
	removed := make(chan error, 1)
	registered := make(chan cache.ResourceEventHandlerRegistration, 1)
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		own := <-registered
		stop()
		for !informer.IsStopped() {
			runtime.Gosched()
		}
		<-time.After(50 * time.Millisecond) // the informer waits for this call
		removed <- informer.RemoveEventHandler(own)
	}})
	if err != nil {
		t.Fatal(err)
	}
	registered <- registration
	f.Start(ctx)
	select {
	case err := <-removed:
		if err != nil {
			t.Error(err)
		}
		shutdown(t, f)
	case <-time.After(20 * time.Second):
		t.Error("the handler waits for the informer, which waits for the handler")
	}
}

func TestRemoveEventHandler_AfterASecondRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFactory(t, fakecluster.New(widgetType))
		informer := f.ForResource(widgets).Informer()
		start(t.Context(), f)
		ended, end := context.WithCancel(t.Context())
		end()
		informer.RunWithContext(ended) // it has no effect
		synctest.Wait()
		registration, err := informer.AddEventHandler(&recorder{})
		if err != nil {
			t.Fatal(err)
		}
		removed := make(chan error, 1)
		go func() { removed <- cache.ShutDownEventHandler(informer, registration) }()
		synctest.Wait()
		select {
		case err := <-removed:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("the handler was not removed")
		}
		shutdown(t, f)
	})
}

func TestStatus_HasTheOwnersOfLeases(t *testing.T) {
	inLeases(t, func(in bubble) {
		named := dynamicinformer.WithLeaseName("gc")
		first := acquire(in.T, in.factory, widgets, named)
		began := time.Now()
		time.Sleep(time.Minute)
		second := acquire(in.T, in.factory, widgets, named)
		other := acquire(in.T, in.factory, widgets)
		want := []status.Owner{{Leases: 1, Since: began.Add(time.Minute)}, {Name: "gc", Leases: 2, Since: began}}
		if diff := cmp.Diff(want, other.Status().Owners); diff != "" {
			in.Errorf("owners (-want +got):\n%s", diff)
		}
		first.Release()
		first.Release() // the second call has no effect
		second.Release()
		if got := other.Status(); len(got.Owners) != 1 || got.Owners[0].Name != "" || got.Leases != 1 {
			in.Errorf("after two were released: %+v", got.Owners)
		}
		other.Release()
	})
}

func TestStatus_CountsTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		create(t, cluster, widgets, "ns", "a")
		l := acquire(t, f, widgets)
		f.Start(t.Context())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		create(t, cluster, widgets, "ns", "b")
		deleteWidget(t, cluster, "a")
		synctest.Wait()
		last := time.Now()
		time.Sleep(time.Minute)
		got := l.Status().Traffic
		if got.Lists != 1 || got.Watches != 1 || got.Events != 3 || !got.LastEvent.Equal(last) || got.Failures != nil {
			t.Errorf("traffic: %+v", got)
		}
		shutdown(t, f)
	})
}

// client-go names them after the type of an example object.
func TestInformer_CheckersHaveTheNameOfTheResource(t *testing.T) {
	informer := newFactory(t, fakecluster.New(widgetType)).ForResource(widgets).Informer()
	registration, err := informer.AddEventHandler(&recorder{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "SharedIndexInformer example.com/v1, Resource=widgets"
	if got := informer.HasSyncedChecker().Name(); got != want {
		t.Errorf("the informer's checker has the name %q, want %q", got, want)
	}
	if got := registration.HasSyncedChecker().Name(); !strings.HasPrefix(got, want+" + event handler github.com/") {
		t.Errorf("the registration's checker has the name %q", got)
	}
}
