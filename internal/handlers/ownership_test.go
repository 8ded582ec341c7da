package handlers

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// owner owns all objects, except those that a test names.
type owner struct {
	mu           sync.Mutex
	lost, hidden map[types.UID]bool // not owned, and not in the view either
	onOwns       func(uid types.UID)
}

func (o *owner) Owns(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.onOwns != nil {
		o.onOwns(uid)
	}
	return !o.lost[uid] && !o.hidden[uid]
}

func (o *owner) Has(uid types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.hidden[uid]
}

// change changes which objects are not owned: those of lost are in the view, and those of hidden are not.
func (o *owner) change(lost, hidden string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost, o.hidden = map[types.UID]bool{}, map[types.UID]bool{}
	for uid := range strings.FieldsSeq(lost) {
		o.lost[types.UID(uid)] = true
	}
	for uid := range strings.FieldsSeq(hidden) {
		o.hidden[types.UID(uid)] = true
	}
}

// fed is an informer whose events come from a test. It runs until stop closes.
type fed struct {
	informer

	stop, synced chan struct{}
	during       func(cache.ResourceEventHandler) // is called by the next AddEventHandlerWithOptions
	err          error
}

func newFed() *fed { return &fed{stop: make(chan struct{}), synced: make(chan struct{})} }

func (f *fed) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if f.during != nil {
		f.during(h)
	}
	if f.err != nil {
		return nil, f.err
	}
	f.handlers = append(f.handlers, h)
	return &fedToken{informer: f}, nil
}

type fedToken struct {
	cache.ResourceEventHandlerRegistration
	informer *fed
}

func (t *fedToken) ShutdownChan() <-chan struct{}       { return t.informer.stop }
func (t *fedToken) HasSyncedChecker() cache.DoneChecker { return t }
func (t *fedToken) Name() string                        { return "" }
func (t *fedToken) Done() <-chan struct{}               { return t.informer.synced }

// movedThing is a deleted object that has moved.
type movedThing struct{ obj any }

func movedOf(deleted any) (any, bool) {
	if m, is := deleted.(movedThing); is {
		return m.obj, true
	}
	return deleted, false
}

// recorder is a handler that records its calls.
type recorder struct {
	mu    sync.Mutex
	calls []string
	hook  func(call string) // is called during each call
}

func (r *recorder) record(text string) {
	r.mu.Lock()
	r.calls = append(r.calls, text)
	hook := r.hook
	r.mu.Unlock()
	if hook != nil {
		hook(text)
	}
}

func (r *recorder) OnAdd(obj any, initial bool) { e := addition(obj, initial); r.record(e.text()) }
func (r *recorder) OnUpdate(old, obj any)       { e := update(old, obj); r.record(e.text()) }
func (r *recorder) OnDelete(obj any)            { e := deletion(obj); r.record(e.text()) }
func (r *recorder) OnMoved(obj any) {
	e := deletion(obj)
	r.record(strings.Replace(e.text(), "delete", "moved", 1))
}

// taken returns the calls since the last one of taken.
func (r *recorder) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// rig is a set of one handler, whose informer runs.
type rig struct {
	*recorder
	set          *Set
	owner        *owner
	informer     *fed
	handler      *handler
	registration cache.ResourceEventHandlerRegistration
}

// newRig must be ended by end.
func newRig(t *testing.T, group *Group, period time.Duration) *rig {
	t.Helper()
	r := &rig{recorder: &recorder{}, owner: &owner{}, informer: newFed()}
	r.set = NewSet(r.informer, &feed{}, nil)
	r.set.Owner, r.set.Moved = r.owner, movedOf
	r.add(t, group, period)
	_, stop := r.set.Start(t.Context())
	t.Cleanup(stop)
	return r
}

func (r *rig) add(t *testing.T, group *Group, period time.Duration) {
	t.Helper()
	registration, err := r.set.Add(r.recorder, cache.HandlerOptions{}, group, period)
	if err != nil {
		t.Fatal(err)
	}
	r.registration, r.handler = registration, r.informer.handlers[len(r.informer.handlers)-1].(*handler)
}

// end ends the informer after its last call, as client-go does.
func (r *rig) end() {
	synctest.Wait()
	close(r.informer.stop)
	r.set.Wait()
}

// give gives the handler events, which are as in pending_test.go, as client-go does.
func (r *rig) give(events ...event) {
	for _, e := range events {
		switch {
		case e.kind == added:
			r.handler.OnAdd(e.obj, e.initial)
		case e.kind == updated:
			r.handler.OnUpdate(e.old, e.obj)
		case e.moved:
			r.handler.OnDelete(movedThing{e.obj})
		case e.kind == deleted:
			r.handler.OnDelete(e.obj)
		}
	}
	synctest.Wait()
}

// change changes ownership, and says so.
func (r *rig) change(lost, hidden string) {
	r.owner.change(lost, hidden)
	r.set.OwnershipChanged()
	synctest.Wait()
}

// expect compares the calls since the last expect.
func (r *rig) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := r.taken(); !slices.Equal(got, want) {
		t.Errorf("%s: calls %q, want %q", what, got, want)
	}
}

func moving(obj any) event {
	e := deletion(obj)
	e.moved = true
	return e
}

// x returns a version of the object x with that UID.
func x(uid string, version int) *metav1.PartialObjectMetadata { return thing("x", uid, version) }

// The handler gets the events of before; the process does not own a while the next ones arrive, and owns it again. With
// coalescing, they pass through the coalescer before.
func TestOwnership_ParksAndMergesTheEventsOfAnObject(t *testing.T) {
	told := []event{addition(x("a", 1), false)}
	for name, tc := range map[string]struct {
		before, parked []event
		during, after  []string
	}{
		"addition":              {nil, []event{addition(x("a", 1), false)}, nil, []string{"add a1"}},
		"addition and update":   {nil, []event{addition(x("a", 1), false), update(x("a", 1), x("a", 2))}, nil, []string{"add a2"}},
		"addition and deletion": {nil, []event{addition(x("a", 1), false), deletion(x("a", 2))}, nil, nil},
		"addition and move":     {nil, []event{addition(x("a", 1), false), moving(x("a", 1))}, nil, nil},
		"updates":               {told, []event{update(x("a", 1), x("a", 2)), update(x("a", 2), x("a", 3))}, nil, []string{"update a1 a3"}},
		"deletion":              {told, []event{deletion(x("a", 2))}, nil, []string{"delete a2"}},
		"update and deletion":   {told, []event{update(x("a", 1), x("a", 2)), deletion(x("a", 3))}, nil, []string{"delete a3"}},
		"deletion of unknown state": {
			told, []event{deletion(cache.DeletedFinalStateUnknown{Key: "ns/x", Obj: x("a", 1)})}, nil, []string{"delete a1"},
		},
		"move":            {told, []event{moving(x("a", 1))}, []string{"moved a1"}, nil},
		"update and move": {told, []event{update(x("a", 1), x("a", 2)), moving(x("a", 2))}, []string{"moved a2"}, nil},
		"move and return": {
			told, []event{update(x("a", 1), x("a", 2)), moving(x("a", 2)), addition(x("a", 3), false)}, []string{"moved a2"}, []string{"add a3"},
		},
		"deletion, return and move": {
			told, []event{deletion(x("a", 2)), addition(x("a", 3), false), moving(x("a", 3))}, []string{"moved a3"}, nil,
		},
		"deletion and owned addition": {told, []event{deletion(x("a", 2)), addition(x("b", 3), false)}, nil, []string{"delete a2", "add b3"}},
		"deletion and owned object with the same name": {
			told,
			[]event{deletion(x("a", 2)), addition(x("b", 3), false), deletion(x("b", 4)), addition(x("c", 5), false), update(x("c", 5), x("c", 6))},
			nil,
			[]string{"delete a2", "add c6"},
		},
		"deletion and moved object with the same name": {
			told, []event{deletion(x("a", 2)), addition(x("b", 3), false), moving(x("b", 3))}, nil, []string{"delete a2"},
		},
		"update to an owned object": {told, []event{update(x("a", 1), x("a", 2)), update(x("a", 2), x("b", 3))}, []string{"update a1 b3"}, nil},
		"client-go's resync":        {told, []event{update(x("a", 1), x("a", 1))}, nil, nil},
	} {
		for _, coalescing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, coalescing=%v", name, coalescing), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, NewGroup("", Options{Coalescing: coalescing}), 0)
					defer r.end()
					r.give(tc.before...)
					r.taken()
					r.owner.change("a", "")
					for _, e := range tc.parked {
						if v, is := e.obj.(*metav1.PartialObjectMetadata); is && name == "client-go's resync" {
							e = update(v, v)
						}
						r.give(e)
					}
					r.expect(t, "while it is not owned", tc.during...)
					r.change("", "")
					r.expect(t, "when it is owned", tc.after...)
					r.change("", "")
					r.expect(t, "later")
				})
			})
		}
	}
}

// The object moves, comes back and is deleted while the handler is in another call.
func TestOwnership_DeletionOfAnObjectThatCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, NewGroup("", Options{Coalescing: true}), 0)
		defer r.end()
		r.give(addition(x("a", 1), false))
		r.taken()
		busy := make(chan struct{})
		r.hook = func(string) { <-busy }
		r.give(addition(thing("y", "b", 1), false), moving(x("a", 1)), addition(x("a", 2), false), deletion(x("a", 3)))
		r.owner.change("a", "")
		close(busy)
		synctest.Wait()
		r.expect(t, "while it is not owned", "add b1")
		r.change("", "")
		r.expect(t, "when it is owned", "delete a3")
	})
}

// Objects that are owned are not affected by others, and parked events come in the order of parking.
func TestOwnership_DeliversInTheOrderOfParking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		r.owner.change("a b c", "")
		r.give(
			addition(thing("3", "c", 1), false), addition(thing("1", "a", 2), false), addition(thing("4", "d", 3), false),
			addition(thing("2", "b", 4), false), update(thing("3", "c", 1), thing("3", "c", 5)),
		)
		r.expect(t, "owned", "add d3")
		r.change("a", "")
		r.expect(t, "c and b are owned", "add c5", "add b4")
		r.owner.change("", "")
		r.give(update(thing("1", "a", 2), thing("1", "a", 6)), update(thing("4", "d", 3), thing("4", "d", 7)))
		got := r.taken()
		slices.Sort(got)
		if want := []string{"add a6", "update d3 d7"}; !slices.Equal(got, want) {
			t.Errorf("before OwnershipChanged: %q, want %q", got, want)
		}
	})
}

// The informer removes a deleted object of another process from its cache at once, and nothing is left that could move.
func TestOwnership_DeletionOutsideOfTheViewIsMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		r.give(addition(x("a", 1), false), addition(thing("y", "b", 2), false), addition(thing("z", "c", 3), false))
		r.taken()
		r.owner.change("b", "a c")
		r.give(update(thing("z", "c", 3), thing("z", "c", 4)), deletion(x("a", 4)), deletion(thing("y", "b", 5)), deletion(thing("z", "c", 6)))
		r.expect(t, "at once", "moved a4", "moved c6")
		r.change("", "b")
		r.expect(t, "when the view changes", "moved b5")
		r.owner.change("", "d")
		r.give(addition(thing("z", "d", 7), false), deletion(thing("z", "d", 8)))
		r.expect(t, "of an object that the handler does not know")
	})
}

// A handler without OnMoved gets nothing, and is not called with anything else.
func TestOwnership_MovedNeedsOnMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		var calls []string
		_, err := r.set.Add(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { calls = append(calls, "add") }, DeleteFunc: func(any) { calls = append(calls, "delete") },
		}, cache.HandlerOptions{}, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		h := r.informer.handlers[1]
		h.OnAdd(x("a", 1), false)
		r.owner.change("", "a")
		h.OnDelete(x("a", 1))
		if !slices.Equal(calls, []string{"add"}) {
			t.Errorf("calls %q", calls)
		}
	})
}

// accessible is not metadata itself, as what a transform may return.
type accessible struct{ inner metav1.ObjectMeta }

func (a *accessible) GetObjectMeta() metav1.Object { return &a.inner }

func TestOwnership_AsksWithTheUIDOfEachForm(t *testing.T) {
	tree := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x", "uid": "a"}}}
	object, err := packed.NewPacker().Pack(tree)
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "x", UID: "a"}
	for _, obj := range []any{tree, object, &TypedThing{ObjectMeta: meta}, &metav1.PartialObjectMetadata{ObjectMeta: meta}, &accessible{meta}} {
		for _, obj := range []any{obj, cache.DeletedFinalStateUnknown{Key: "x", Obj: obj}} {
			if uid := uidOf(obj); uid != "a" {
				t.Errorf("%T: UID %q", obj, uid)
			}
		}
	}
	for _, obj := range []any{nil, "text", cache.DeletedFinalStateUnknown{Key: "x"}, &TypedThing{}} {
		if uid := uidOf(obj); uid != "" {
			t.Errorf("%T: UID %q", obj, uid)
		}
	}
}

// An object without a UID is owned, whatever Owns says about "".
func TestOwnership_ObjectWithoutUIDIsOwned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		r.owner.onOwns = func(uid types.UID) { t.Errorf("Owns is asked about %q", uid) }
		r.give(addition(x("", 1), false), deletion(cache.DeletedFinalStateUnknown{Key: "ns/x"}))
		r.expect(t, "calls", "add 1", "delete ?")
	})
}

// Otherwise Quiesce could miss a call between the check and its beginning.
func TestOwnership_CallIsInProgressWhenOwnershipIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		r.owner.change("a", "")
		r.give(addition(x("a", 1), false))
		last := types.UID("")
		r.owner.mu.Lock()
		r.owner.onOwns = func(types.UID) { last, _ = r.handler.inProgress() }
		r.owner.mu.Unlock()
		r.give(addition(thing("y", "b", 1), false))
		if last != "b" {
			t.Errorf("the call for an event is for %q", last)
		}
		r.change("", "")
		if last != "a" {
			t.Errorf("the call for a parked event is for %q", last)
		}
		r.expect(t, "calls", "add b1", "add a1")
	})
}

// Ownership may end between the look at all parked events and the call for one of them.
func TestOwnership_IsLostDuringTheDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		r.owner.change("a b", "")
		r.give(addition(x("a", 1), false), addition(thing("y", "b", 2), false))
		r.hook = func(call string) {
			if call == "add a1" {
				r.owner.change("b", "")
			}
		}
		r.change("", "")
		r.expect(t, "b is lost during the call for a", "add a1")
		r.change("", "")
		r.expect(t, "b is owned", "add b2")
	})
}

// A term may end and be renewed without a change of the view.
func TestOwnership_LooksAgainWithoutAChangeOfTheView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		r.owner.change("a", "b")
		r.give(addition(thing("y", "b", 1), false), addition(x("a", 1), false))
		time.Sleep(3*recheckEvery + recheckEvery/2)
		r.owner.change("", "")
		r.expect(t, "before")
		time.Sleep(recheckEvery)
		r.expect(t, "after", "add b1", "add a1")
		r.owner.change("", "b")
		r.give(update(thing("y", "b", 1), thing("y", "b", 2)))
		r.owner.change("", "")
		time.Sleep(10 * recheckEvery)
		r.expect(t, "of an object outside of the view")
	})
}

// An event that is parked waits for no handler, and has no call.
func TestOwnership_Counts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given, i, o := &feed{}, newFed(), &owner{}
		s := NewSet(i, given, nil)
		s.Owner, s.Moved = o, movedOf
		r := &rig{recorder: &recorder{}, set: s, owner: o, informer: i}
		r.add(t, nil, 0)
		_, stop := s.Start(t.Context())
		defer stop()
		defer r.end()
		give := func(e event) {
			given.add()
			r.give(e)
		}
		expect := func(what string, delivered, merged uint64) {
			t.Helper()
			now := s.Stats(time.Now())[0]
			if now.Delivered != delivered || now.Merged != merged || now.Backlog != 0 || !now.BehindSince.IsZero() || !now.RunningSince.IsZero() {
				t.Errorf("%s: %+v", what, now)
			}
		}
		give(addition(x("a", 1), false))
		o.change("a b", "")
		give(update(x("a", 1), x("a", 2)))
		give(addition(thing("y", "b", 3), false))
		expect("two events are parked", 1, 0)
		give(update(x("a", 2), x("a", 4)))
		expect("one is merged", 1, 1)
		give(deletion(thing("y", "b", 5)))
		expect("one is none with its deletion", 1, 3)
		obj := x("a", 4)
		r.give(update(obj, obj))
		expect("a resync is dropped", 1, 3)
		r.change("", "")
		expect("delivered", 2, 3)
		give(deletion(x("a", 6)))
		expect("not parked", 3, 3)
		o.change("b", "")
		give(addition(thing("y", "b", 7), false))
		given.add()
		r.change("", "")
		if now := s.Stats(time.Now())[0]; now.Delivered != 4 || now.Backlog != 1 {
			t.Errorf("one event is on its way when a parked one is delivered: %+v", now)
		}
	})
}

// The old states of parked updates and deletions have the limit of those that wait for a handler.
func TestOwnership_LimitsTheStatesInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, NewGroup("", Options{States: 2}), 0)
		defer r.end()
		for n := range 5 {
			name, uid := fmt.Sprint(n), fmt.Sprint("u", n)
			r.give(addition(thing(name, uid, 1), false))
			r.owner.change("u0 u1 u2 u3 u4", "")
			r.give(update(thing(name, uid, 1), thing(name, uid, 2)))
			r.owner.change("", "")
		}
		if states := r.handler.ownership.parked.states; states != 2 {
			t.Errorf("%d states", states)
		}
	})
}

// A handler that was behind, and whose last waiting events were parked, is not behind.
func TestOwnership_ParkedEventsAreNotBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given, i, o := &feed{}, newFed(), &owner{}
		s := NewSet(i, given, nil)
		s.Owner = o
		r := &rig{recorder: &recorder{}, set: s, owner: o, informer: i}
		r.add(t, nil, 0)
		given.add()
		given.add()
		r.give(addition(x("a", 1), false))
		if s.Stats(time.Now())[0].BehindSince.IsZero() {
			t.Error("not behind")
		}
		o.change("a", "")
		r.give(update(x("a", 1), x("a", 2)))
		if now := s.Stats(time.Now())[0]; !now.BehindSince.IsZero() || now.Backlog != 0 {
			t.Errorf("behind: %+v", now)
		}
	})
}

func TestOwnership_ResyncIsOfObjectsThatAreOwnedAndKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 10*time.Second)
		defer r.end()
		r.give(addition(x("a", 1), false))
		r.owner.change("a", "b")
		r.give(addition(thing("y", "b", 2), false))
		r.taken()
		time.Sleep(11 * time.Second)
		r.expect(t, "not owned")
		r.owner.change("", "a b")
		r.give(update(x("a", 1), x("a", 2)))
		r.owner.change("", "")
		time.Sleep(time.Millisecond)
		r.expect(t, "not said")
		time.Sleep(10 * time.Second) // a resync of an object with a parked event delivers it
		got := r.taken()
		if want := []string{"add b2", "update a1 a2"}; !slices.Equal(got, want) {
			t.Errorf("parked events: %q, want %q", got, want)
		}
		time.Sleep(10 * time.Second)
		got = r.taken()
		slices.Sort(got)
		if want := []string{"update a2 a2", "update b2 b2"}; !slices.Equal(got, want) {
			t.Errorf("resync: %q, want %q", got, want)
		}
		r.owner.change("", "a")
		r.give(deletion(x("a", 3)))
		r.owner.change("", "")
		r.taken()
		time.Sleep(10 * time.Second)
		r.expect(t, "a has moved", "update b2 b2")
	})
}

// A member of a group that has no slots yet must start.
func TestOwnership_RegistrationDoesNotWaitForOwnership(t *testing.T) {
	for _, coalescing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, NewGroup("", Options{Coalescing: coalescing}), 0)
			defer r.end()
			r.owner.change("a", "")
			r.give(addition(x("a", 1), true))
			close(r.informer.synced)
			synctest.Wait()
			if !r.registration.HasSyncedChecker().(*namedChecker).isDone() {
				t.Error("not synced")
			}
			r.change("", "")
			r.expect(t, "not a part of the initial list", "add a1")
		})
	}
}

func (c *namedChecker) isDone() bool { return closed(c.Done()) }

// A slow call for a parked event does not delay the end by the others, and no two calls are at the same time.
func TestOwnership_EndsWithItsInformer(t *testing.T) {
	for _, end := range []string{"informer", "handler", "group"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewGroup("", Options{})
				r := newRig(t, g, 0)
				calls, blocked := 0, make(chan struct{})
				r.hook = func(string) { calls++; <-blocked }
				r.owner.change("a b", "")
				r.give(addition(x("a", 1), false))
				for n := range 20 {
					r.give(addition(thing(fmt.Sprint(n), "b", 2), false))
				}
				r.change("", "")
				if end != "informer" { // whose stop closes after client-go's last call
					go r.handler.OnAdd(thing("z", "c", 3), false)
					synctest.Wait()
				}
				switch end {
				case "informer":
					close(r.informer.stop)
				case "handler":
					if err := r.set.Remove(r.registration); err != nil {
						t.Fatal(err)
					}
				case "group":
					g.Close()
				}
				synctest.Wait()
				ended := r.registration.(*registration).ShutdownChan()
				if calls != 1 || closed(ended) {
					t.Errorf("%d calls, ended: %v", calls, closed(ended))
				}
				close(blocked)
				synctest.Wait()
				got := r.taken()
				if end != "informer" {
					close(r.informer.stop)
				}
				if !slices.Equal(got, []string{"add a1"}) {
					t.Errorf("calls %q", got)
				}
				r.set.Wait()
				if !closed(ended) {
					t.Error("not ended")
				}
				if r.handler.ownership.parked.first != nil {
					t.Error("parked events stay in memory")
				}
			})
		})
	}
}

// client-go's goroutine gets its turn after one call, so that the informer can end.
func TestOwnership_CallsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		running := 0
		r.hook = func(call string) {
			running++
			if running != 1 {
				t.Errorf("%d calls at the same time", running)
			}
			time.Sleep(time.Second)
			running--
		}
		r.owner.change("a b c", "")
		r.give(addition(thing("1", "a", 1), false), addition(thing("2", "b", 1), false), addition(thing("3", "c", 1), false))
		r.owner.change("", "")
		r.set.OwnershipChanged()
		time.Sleep(500 * time.Millisecond)
		r.give(addition(thing("4", "d", 1), false))
		time.Sleep(5 * time.Second)
		r.expect(t, "calls", "add a1", "add d1", "add b1", "add c1")
	})
}

// The panic of a call concerns one object, if it does not end the process.
func TestOwnership_PanicLeavesTheOtherParkedEvents(t *testing.T) {
	before := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false //nolint:reassign // client-go's switch for tests
	defer func() { utilruntime.ReallyCrash = before }()
	for _, recovery := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, NewGroup("", Options{Recovery: recovery}), 0)
			defer r.end()
			r.hook = func(call string) {
				if call == "add a1" {
					panic("a")
				}
			}
			r.owner.change("a b", "")
			r.give(addition(x("a", 1), false), addition(thing("y", "b", 2), false))
			r.change("", "")
			r.expect(t, "calls", "add a1", "add b2")
			if now := r.set.Stats(time.Now())[0]; now.Delivered != 2 || (now.Panics == 1) != recovery || !now.RunningSince.IsZero() {
				t.Errorf("%+v", now)
			}
		})
	}
}
