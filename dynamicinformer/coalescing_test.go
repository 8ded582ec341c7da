package dynamicinformer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// setValue updates the label of a widget.
func setValue(t *testing.T, cluster *fakecluster.Cluster, name, value string) {
	t.Helper()
	obj := newObject(name, map[string]string{"value": value})
	if _, err := cluster.Resource(widgets).Namespace("ns").Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// values is a handler that records its events with the label of each object. Each call waits for let, if
// that is not nil.
type values struct {
	recorder
	let chan struct{}
}

func (v *values) value(obj any) string {
	if last, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = last.Obj
	}
	u := obj.(*unstructured.Unstructured)
	return u.GetName() + u.GetLabels()["value"]
}

func (v *values) note(text string) {
	v.mu.Lock()
	v.events = append(v.events, text)
	v.mu.Unlock()
	if v.let != nil {
		<-v.let
	}
}

func (v *values) OnAdd(obj any, initial bool) {
	if initial {
		v.note("add " + v.value(obj) + " initial")
		return
	}
	v.note("add " + v.value(obj))
}
func (v *values) OnUpdate(old, obj any) { v.note("update " + v.value(old) + " " + v.value(obj)) }
func (v *values) OnDelete(obj any)      { v.note("delete " + v.value(obj)) }

// allow lets calls return, and waits until all goroutines are idle.
func (v *values) allow(calls int) {
	for range calls {
		v.let <- struct{}{}
	}
	synctest.Wait()
}

func TestCoalescing_MergesWhileTheHandlerIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := bubble{T: t, cluster: fakecluster.New(widgetType)}
		for _, name := range []string{"a", "b", "c", "d"} {
			create(in.T, in.cluster, widgets, "ns", name)
		}
		f := newFactory(t, in.cluster, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
		defer shutdown(t, f)
		l := acquire(in.T, f, widgets, dynamicinformer.WithCoalescing(0))
		handler := &values{let: make(chan struct{})}
		registration, err := l.AddEventHandler(handler) // before the list, which has the order of names
		if err != nil {
			in.Fatal(err)
		}
		start(t.Context(), f) // it is in the call for a
		setValue(in.T, in.cluster, "b", "1")
		setValue(in.T, in.cluster, "b", "2")
		setValue(in.T, in.cluster, "a", "1")
		setValue(in.T, in.cluster, "a", "2")
		deleteWidget(in.T, in.cluster, "c")
		deleteWidget(in.T, in.cluster, "d")
		create(in.T, in.cluster, widgets, "ns", "d")
		create(in.T, in.cluster, widgets, "ns", "e")
		deleteWidget(in.T, in.cluster, "e")
		if got := handlerOf(in.T, l); got.Backlog != 4 || got.Merged != 9 || got.Delivered != 0 {
			in.Errorf("in the first call: %+v", got)
		}
		if registration.HasSynced() {
			in.Error("the registration has synced, and b of the initial list is pending")
		}
		handler.allow(2)
		if !registration.HasSynced() || !cache.IsDone(registration.HasSyncedChecker()) {
			in.Error("the registration has not synced: a and b were delivered, c and d merged")
		}
		if got := handlerOf(in.T, l); got.Backlog != 2 || got.Merged != 9 || got.Delivered != 2 {
			in.Errorf("in the third call: %+v", got)
		}
		handler.allow(2)
		want := []string{"add a initial", "add b2 initial", "update a a2", "add d"}
		if diff := cmp.Diff(want, handler.take()); diff != "" {
			in.Errorf("events (-want +got):\n%s", diff)
		}
		setValue(in.T, in.cluster, "a", "3")
		synctest.Wait()
		deleteWidget(in.T, in.cluster, "d")
		create(in.T, in.cluster, widgets, "ns", "d")
		setValue(in.T, in.cluster, "d", "1")
		synctest.Wait()
		handler.allow(3)
		want = []string{"update a2 a3", "delete d", "add d1"}
		if diff := cmp.Diff(want, handler.take()); diff != "" {
			in.Errorf("later events (-want +got):\n%s", diff)
		}
		if got := handlerOf(in.T, l); got.Backlog != 0 || got.Merged != 10 || got.Delivered != 7 {
			in.Errorf("at the end: %+v", got)
		}
	})
}

func TestCoalescing_HandlerWithoutDelayGetsEachEvent(t *testing.T) {
	inLeases(t, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "a")
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithCoalescing(0), dynamicinformer.WithResync(10*time.Second))
		handler := &values{}
		if _, err := l.AddEventHandler(handler); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		for _, value := range []string{"1", "2"} {
			setValue(in.T, in.cluster, "a", value)
			synctest.Wait()
		}
		time.Sleep(12 * time.Second) // a resync
		deleteWidget(in.T, in.cluster, "a")
		synctest.Wait()
		want := []string{"add a initial", "update a a1", "update a1 a2", "update a2 a2", "delete a2"}
		if diff := cmp.Diff(want, handler.take()); diff != "" {
			in.Errorf("events (-want +got):\n%s", diff)
		}
		if got := handlerOf(in.T, l); got.Backlog != 0 || got.Merged != 0 || got.Delivered != 5 {
			in.Errorf("status: %+v", got)
		}
	})
}

// HasSynced does not depend on events: an empty list has none, and the first event may be a later one.
func TestCoalescing_RegistrationSyncsWithoutEvents(t *testing.T) {
	inLeases(t, func(in bubble) {
		list := make(chan struct{})
		in.cluster.Intercept(func(context.Context, fakecluster.Request) error {
			<-list
			return nil
		})
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithCoalescing(0))
		before, err := l.AddEventHandler(&values{})
		if err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		if before.HasSynced() {
			in.Error("synced before the list")
		}
		close(list)
		<-before.HasSyncedChecker().Done()
		blocked := &values{let: make(chan struct{})}
		after, err := l.AddEventHandler(blocked)
		if err != nil {
			in.Fatal(err)
		}
		create(in.T, in.cluster, widgets, "ns", "a")
		synctest.Wait()
		if !after.HasSynced() {
			in.Error("a blocked call for a later event delays HasSynced")
		}
		close(blocked.let)
		want := "SharedIndexInformer example.com/v1, Resource=widgets + event handler github.com/gvrkit/gvrkit/dynamicinformer_test.values"
		if got := after.HasSyncedChecker().Name(); got != want {
			in.Errorf("name of the checker: %q, want %q", got, want)
		}
	})
}

// The handler takes 10 ms for an event, and there are 10,000 updates a second.
func TestCoalescing_BacklogIsAtMostTheNumberOfObjects(t *testing.T) {
	inLeases(t, func(in bubble) {
		const objects = 1000
		for i := range objects {
			create(in.T, in.cluster, widgets, "ns", fmt.Sprint(i))
		}
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithCoalescing(0))
		if err := l.WaitForSync(in.Context()); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		late := map[string]string{} // the last value that the handler has got
		handler := cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) {
				late[obj.(*unstructured.Unstructured).GetName()] = ""
				time.Sleep(10 * time.Millisecond)
			},
			UpdateFunc: func(_, obj any) {
				u := obj.(*unstructured.Unstructured)
				late[u.GetName()] = u.GetLabels()["value"]
				time.Sleep(10 * time.Millisecond)
			},
		}
		registration, err := l.AddEventHandler(handler)
		if err != nil {
			in.Fatal(err)
		}
		plain := acquire(in.T, in.factory, widgets)
		if _, err := plain.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { time.Sleep(10 * time.Millisecond) }}); err != nil {
			in.Fatal(err)
		}
		<-registration.HasSyncedChecker().Done()
		const updates = 20000
		most := 0
		for i := range updates {
			setValue(in.T, in.cluster, fmt.Sprint(i%objects), fmt.Sprint(i))
			time.Sleep(100 * time.Microsecond)
			if i%100 == 0 {
				synctest.Wait()
				most = max(most, l.Status().Handlers[0].Backlog)
			}
		}
		synctest.Wait()
		all := l.Status().Handlers
		if most > objects+1 || most < objects/2 { // and the one in progress
			in.Errorf("at most %d events wait, for %d objects", most, objects)
		}
		if got := all[1].Backlog; got < updates*9/10 {
			in.Errorf("without coalescing, %d of %d updates wait", got, updates)
		}
		time.Sleep(objects * 11 * time.Millisecond)
		synctest.Wait()
		for i := range objects {
			if want := fmt.Sprint(updates - objects + i); late[fmt.Sprint(i)] != want {
				in.Fatalf("the handler has %q of object %d, want %q", late[fmt.Sprint(i)], i, want)
			}
		}
		if got := l.Status().Handlers[0]; got.Backlog != 0 || got.Delivered+got.Merged < updates {
			in.Errorf("at the end: %+v", got)
		}
		plain.Release()
		synctest.Wait() // its handler is removed: a removal that waits for the end of the informer would stop the clock
	})
}

func TestCoalescing_ReleaseInAHandlerWithPendingEvents(t *testing.T) {
	inLeases(t, func(in bubble) {
		other := acquire(in.T, in.factory, widgets)
		for _, name := range []string{"a", "b"} {
			create(in.T, in.cluster, widgets, "ns", name)
		}
		if err := other.WaitForSync(in.Context()); err != nil {
			in.Fatal(err)
		}
		synctest.Wait() // the cache has both: they are the handler's initial list
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithCoalescing(0))
		calls, goOn := 0, make(chan struct{})
		registration, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			calls++
			l.Release()
			<-goOn
		}})
		if err != nil {
			in.Fatal(err)
		}
		if isDone(l) {
			in.Error("done while its handler runs")
		}
		ended := make(chan error, 1)
		go func() { ended <- cache.ShutDownEventHandler(other.Informer(), registration) }()
		synctest.Wait()
		select {
		case <-registration.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan():
			in.Error("the registration has ended while its handler runs")
		default:
		}
		close(goOn)
		if !isDone(l) || calls != 1 || registration.HasSynced() {
			in.Errorf("done %v after %d calls; has synced: %v", isDone(l), calls, registration.HasSynced())
		}
		<-registration.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
		if got := len(other.Status().Handlers); got != 0 {
			in.Errorf("%d handlers are left", got)
		}
		if err := <-ended; err != nil {
			in.Error(err)
		}
	})
}

func TestCoalescing_RemovalInTheHandler(t *testing.T) {
	inLeases(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithCoalescing(0))
		if err := l.WaitForSync(in.Context()); err != nil {
			in.Fatal(err)
		}
		calls := 0
		var registration cache.ResourceEventHandlerRegistration
		registration, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			calls++
			time.Sleep(time.Second)
			if err := l.RemoveEventHandler(registration); err != nil {
				in.Error(err)
			}
		}})
		if err != nil {
			in.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			create(in.T, in.cluster, widgets, "ns", name)
		}
		synctest.Wait()
		if err := cache.ShutDownEventHandler(l.Informer(), registration); err != nil {
			in.Error(err)
		}
		time.Sleep(time.Minute)
		if calls != 1 || len(l.Status().Handlers) != 0 {
			in.Errorf("%d calls, handlers %+v", calls, l.Status().Handlers)
		}
	})
}

// A goroutine that is left fails the bubble. The last call is waited for, also if the informer was run
// without the factory.
func TestCoalescing_EndsWithTheInformer(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, f *dynamicinformer.Factory, l *dynamicinformer.Lease) (stop func()){
		"of the factory": func(t *testing.T, f *dynamicinformer.Factory, _ *dynamicinformer.Lease) func() {
			t.Helper()
			f.Start(t.Context())
			return func() { shutdown(t, f) }
		},
		"run by hand": func(t *testing.T, f *dynamicinformer.Factory, _ *dynamicinformer.Lease) func() {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				f.ForResource(widgets).Informer().Run(ctx.Done())
			}()
			return func() { cancel(); <-ended; shutdown(t, f) }
		},
		"that never runs": func(t *testing.T, f *dynamicinformer.Factory, _ *dynamicinformer.Lease) func() {
			t.Helper()
			return func() { shutdown(t, f) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				create(t, cluster, widgets, "ns", "a")
				create(t, cluster, widgets, "ns", "b")
				f := newFactory(t, cluster)
				l := acquire(t, f, widgets, dynamicinformer.WithCoalescing(0))
				inCall, calls := false, 0
				if _, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
					inCall = true
					calls++
					time.Sleep(time.Minute)
					inCall = false
				}}); err != nil {
					t.Fatal(err)
				}
				stop := run(t, f, l)
				synctest.Wait()
				stop()
				if inCall || calls > 1 {
					t.Errorf("in a call: %v, after %d calls", inCall, calls)
				}
				if !isDone(l) {
					t.Error("the lease is not done")
				}
			})
		})
	}
}

// The panic of a handler ends the process, unless the program has set ReallyCrash. Then, as in client-go,
// the handler gets the next event.
func TestCoalescing_PanicIsThatOfClientGo(t *testing.T) {
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash = true }()
	inLeases(t, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "a")
		create(in.T, in.cluster, widgets, "ns", "b")
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithCoalescing(0))
		calls := 0
		registration, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			if calls++; calls == 1 {
				panic("x")
			}
		}})
		if err != nil {
			in.Fatal(err)
		}
		<-registration.HasSyncedChecker().Done()
		if got := handlerOf(in.T, l); calls != 2 || got.Backlog != 0 || !got.RunningSince.IsZero() {
			in.Errorf("%d calls, %+v", calls, got)
		}
	})
}

// colors is a handler that records the colors of each event. Each call waits for let.
type colors struct {
	mu     sync.Mutex
	events []string
	let    chan struct{}
}

// color returns the name, labels and color of an object, and the key of an unknown final state.
func (c *colors) color(obj any) string {
	key := ""
	if last, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj, key = last.Obj, " "+last.Key
	}
	text, _ := json.Marshal(obj)
	var content struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Spec     struct{ Color string }
	}
	_ = json.Unmarshal(text, &content)
	return fmt.Sprintf("%s %s%s %q%s", content.Kind, content.Metadata.Name, content.Metadata.Labels["a"], content.Spec.Color, key)
}

func (c *colors) note(text string) {
	c.mu.Lock()
	c.events = append(c.events, text)
	c.mu.Unlock()
	<-c.let
}

func (c *colors) OnAdd(obj any, _ bool) { c.note("add " + c.color(obj)) }
func (c *colors) OnUpdate(old, obj any) { c.note("update " + c.color(old) + ", " + c.color(obj)) }
func (c *colors) OnDelete(obj any)      { c.note("delete " + c.color(obj)) }

func (c *colors) OnMoved(obj any) { c.note("move " + c.color(obj)) }

// coloredWidget is the Go type of a widget with a color.
type coloredWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Color string `json:"color"`
	} `json:"spec"`
}

func (w *coloredWidget) DeepCopyObject() runtime.Object { c := *w; return &c }

// The old object of an update, and a deleted object, have only metadata if as many of them as the limit wait.
func TestCoalescing_LimitsTheOldStatesThatWait(t *testing.T) {
	for form, acquireForm := range map[string]func(*dynamicinformer.Factory, ...dynamicinformer.LeaseOption) *dynamicinformer.Lease{
		"unstructured": func(f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
			return acquire(t, f, widgets, opts...)
		},
		"packed": func(f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
			return acquire(t, f, widgets, append(opts, dynamicinformer.WithPackedCache())...)
		},
		"Go type": func(f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
			l, err := dynamicinformer.AcquireTyped[*coloredWidget](t.Context(), f, widgets, opts...)
			if err != nil {
				t.Fatal(err)
			}
			return l.Lease
		},
	} {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				for _, name := range []string{"a", "b", "c", "d"} {
					obj := newObject(name, map[string]string{"a": "b"})
					if _, err := cluster.Resource(widgets).Namespace("ns").Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
					paint(t, cluster, name, "red")
				}
				f := newFactory(t, cluster)
				defer shutdown(t, f)
				l := acquireForm(f, dynamicinformer.WithCoalescing(1))
				handler := &colors{let: make(chan struct{})}
				if _, err := l.AddEventHandler(handler); err != nil {
					t.Fatal(err)
				}
				start(t.Context(), f)
				for range 4 {
					handler.let <- struct{}{}
					synctest.Wait()
				}
				handler.events = nil
				for _, name := range []string{"a", "b", "c"} {
					paint(t, cluster, name, "blue")
					synctest.Wait() // the handler is in the call for a
				}
				deleteWidget(t, cluster, "d")
				synctest.Wait()
				for range 4 {
					handler.let <- struct{}{}
					synctest.Wait()
				}
				want := []string{
					`update Widget ab "red", Widget ab "blue"`, `update Widget bb "red", Widget bb "blue"`,
					`update Widget cb "", Widget cb "blue"`, `delete Widget db "" ns/d`,
				}
				if diff := cmp.Diff(want, handler.events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}
