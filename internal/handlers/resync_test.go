package handlers

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// A ticker keeps one tick: a handler that is slower than its period would get one resync after another.
func TestResync_LeavesOutPeriodsThatEndDuringTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 2*time.Second)
		start := time.Now()
		r.give(addition(x("a", 1), false))
		var begins []time.Duration
		r.mu.Lock()
		r.hook = func(string) {
			begins = append(begins, time.Since(start))
			time.Sleep(3 * time.Second)
		}
		r.mu.Unlock()
		time.Sleep(16 * time.Second)
		r.end()
		if want := []time.Duration{2 * time.Second, 6 * time.Second, 10 * time.Second, 14 * time.Second}; !slices.Equal(begins, want) {
			t.Errorf("resyncs begin after %v, want %v", begins, want)
		}
	})
}

// The calls of a resync don't keep a wrong backlog: the handler has no event.
func TestResync_HandlerWithoutEventsHasNoBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, time.Second)
		defer r.end()
		given := r.set.feed.(*feed)
		given.add()
		r.give(addition(x("a", 1), false))
		given.add() // the informer leaves it out
		time.Sleep(5*time.Second + time.Millisecond)
		if got := r.set.Stats(time.Now())[0]; got.Delivered != 6 || got.Backlog != 0 || !got.BehindSince.IsZero() {
			t.Errorf("after five resyncs: %+v", got)
		}
		hook := func(hook func(string)) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.hook = hook
		}
		hook(func(string) { time.Sleep(10 * time.Second) })
		given.add() // the informer leaves it out
		time.Sleep(5 * time.Second)
		if got := r.set.Stats(time.Now())[0]; got.RunningSince.IsZero() || got.Backlog != 0 || !got.BehindSince.IsZero() {
			t.Errorf("in a resync: %+v", got)
		}
		given.add()
		go r.handler.OnUpdate(x("a", 1), x("a", 2))
		time.Sleep(2 * time.Second)
		if got := r.set.Stats(time.Now())[0]; got.Backlog != 1 {
			t.Errorf("an event waits for the end of a resync: %+v", got)
		}
		hook(nil)
		time.Sleep(time.Minute)
	})
}

// A program may keep the registration of a handler that has ended.
func TestResync_ObjectsAreReleasedWithTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, NewGroup("", Options{Coalescing: true}), time.Hour)
		r.give(addition(x("a", 1), false), addition(thing("y", "b", 1), false))
		synctest.Wait()
		let := make(chan struct{})
		r.mu.Lock()
		r.hook = func(string) { <-let }
		r.mu.Unlock()
		r.give(update(x("a", 1), x("a", 2)), deletion(thing("y", "b", 1)))
		synctest.Wait()
		close(r.informer.stop)
		synctest.Wait()
		close(let)
		r.set.Wait()
		if r.handler.coalescer.pending.first != nil || len(r.handler.resync.objects) > 0 {
			t.Errorf("it keeps %v and %v", r.handler.coalescer.pending.first, r.handler.resync.objects)
		}
	})
}

// If a panic does not end the process, the handler gets its other resyncs, as in client-go.
func TestResync_GoesOnAfterAPanic(t *testing.T) {
	before := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false //nolint:reassign // client-go's switch for tests
	defer func() { utilruntime.ReallyCrash = before }()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, time.Minute)
		defer r.end()
		r.give(addition(x("a", 1), false))
		r.expect(t, "the addition", "add a1")
		r.mu.Lock()
		r.hook = func(string) { panic("a resync") }
		r.mu.Unlock()
		time.Sleep(3*time.Minute + time.Second)
		r.expect(t, "resyncs", "update a1 a1", "update a1 a1", "update a1 a1")
		if closed(r.registration.(*registration).ShutdownChan()) {
			t.Error("the registration says that the handler has ended")
		}
	})
}

// comparableThing and uncomparableThing are of types that a transform may return.
type (
	comparableThing   struct{ *metav1.ObjectMeta }
	uncomparableThing struct {
		*metav1.ObjectMeta

		_ []string
	}
)

func TestUpdate_OfEqualValuesIsAResync(t *testing.T) {
	a1, a2 := &x("a", 1).ObjectMeta, &x("a", 2).ObjectMeta
	for name, tc := range map[string]struct {
		old, obj any
		want     uint64
	}{
		"equal values":      {comparableThing{a1}, comparableThing{a1}, 0},
		"other values":      {comparableThing{a1}, comparableThing{a2}, 1},
		"values of slices":  {uncomparableThing{ObjectMeta: a1}, uncomparableThing{ObjectMeta: a1}, 1},
		"another type":      {comparableThing{a1}, uncomparableThing{ObjectMeta: a1}, 1},
		"equal pointers":    {a1, a1, 0},
		"pointers to equal": {a1, a1.DeepCopy(), 1},
	} {
		if got := update(tc.old, tc.obj).counts; got != tc.want {
			t.Errorf("%s: %d events, want %d", name, got, tc.want)
		}
	}
}

// A resync is no event, whatever the type of the object is: it is not parked.
func TestResync_OfAnObjectThatCannotBeCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		updates := 0
		if _, err := r.set.Add(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { updates++ }}, cache.HandlerOptions{}, nil, 2*time.Second); err != nil {
			t.Fatal(err)
		}
		r.informer.handlers[1].OnAdd(uncomparableThing{ObjectMeta: &x("a", 1).ObjectMeta}, false)
		time.Sleep(3 * time.Second)
		r.change("a", "")
		time.Sleep(4 * time.Second)
		r.change("", "")
		if updates != 1 {
			t.Errorf("%d updates, want that of the resync before the loss", updates)
		}
	})
}
