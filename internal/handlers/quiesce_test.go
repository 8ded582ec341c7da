package handlers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// quiesce runs Quiesce with a limit of a minute, and returns after how long it has ended.
func (r *rig) quiesce(t *testing.T) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begun := time.Now()
	err := r.set.Quiesce(ctx)
	return time.Since(begun), err
}

func TestQuiesce_WaitsForCallsThatAreNotOwned(t *testing.T) {
	deleted := func(r *rig) { r.give(deletion(x("a", 2))) }
	for name, tc := range map[string]struct {
		lost, hidden string
		begin        func(r *rig)               // begins a call of an hour, or of 10 s for a
		then         func(t *testing.T, r *rig) // after ownership has changed
		want         time.Duration
	}{
		"the call of an owned object":        {lost: "b", want: 0},
		"the call of an object of the view":  {lost: "a", want: 10 * time.Second},
		"the call of an object that is lost": {hidden: "a", want: 10 * time.Second},
		"a handler that was removed": {hidden: "a", want: 10 * time.Second, then: func(t *testing.T, r *rig) {
			t.Helper()
			if err := r.set.Remove(r.registration); err != nil {
				t.Error(err)
			}
		}},
		"a group that was closed":  {hidden: "a", want: 10 * time.Second, then: func(_ *testing.T, r *rig) { r.handler.group.Close() }},
		"OnMoved":                  {hidden: "a", want: 0, begin: func(r *rig) { r.give(moving(x("a", 2))) }},
		"a deletion that is moved": {hidden: "a", want: 0, begin: func(r *rig) { r.owner.change("", "a"); deleted(r) }},
		"a deletion":               {hidden: "a", want: 10 * time.Second, begin: deleted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, NewGroup("", Options{}), 0)
				defer r.end()
				r.give(addition(x("a", 1), false))
				r.hook = func(string) { time.Sleep(10 * time.Second) }
				if tc.begin == nil {
					tc.begin = func(r *rig) { r.give(update(x("a", 1), x("a", 2))) }
				}
				go tc.begin(r)
				synctest.Wait()
				r.owner.change(tc.lost, tc.hidden)
				r.set.OwnershipChanged()
				if tc.then != nil {
					tc.then(t, r)
				}
				go r.handler.OnUpdate(x("a", 2), x("a", 3)) // it waits
				synctest.Wait()
				if took, err := r.quiesce(t); took != tc.want || err != nil {
					t.Errorf("%v after %v, want %v", err, took, tc.want)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// Each handler has at most one call in progress; later ones do not count.
func TestQuiesce_WaitsForSeveralHandlersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		r.add(t, nil, 0)
		defer r.end()
		r.hook = func(string) { time.Sleep(10 * time.Second) }
		for n, h := range r.informer.handlers {
			go func() {
				time.Sleep(time.Duration(n) * time.Second)
				h.OnAdd(x("a", 1), false)
				h.OnAdd(thing("y", "b", 1), false)
			}()
		}
		time.Sleep(2 * time.Second)
		r.owner.change("a", "")
		took, err := r.quiesce(t)
		if took != 9*time.Second || err != nil {
			t.Errorf("%v after %v", err, took)
		}
		r.owner.change("", "")
		time.Sleep(time.Minute)
	})
}

// A call begins before Add has returned.
func TestQuiesce_WaitsForAHandlerThatIsBeingAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		r.hook = func(string) { time.Sleep(10 * time.Second) }
		r.informer.during = func(h cache.ResourceEventHandler) {
			go h.OnAdd(x("a", 1), true)
			synctest.Wait()
			r.owner.change("a", "")
			if took, err := r.quiesce(t); took != 10*time.Second || err != nil {
				t.Errorf("%v after %v", err, took)
			}
		}
		r.add(t, nil, 0)
	})
}

func TestQuiesce_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		var took time.Duration
		var err error
		r.hook = func(string) { // a handler that waits for itself
			r.owner.change("a", "")
			r.set.OwnershipChanged()
			took, err = r.quiesce(t)
		}
		r.give(addition(x("a", 1), false))
		time.Sleep(2 * time.Minute)
		if took != time.Minute || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v", err, took)
		}
		r.give(addition(x("a", 1), false))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.set.Quiesce(ctx); err != nil {
			t.Errorf("nothing is in progress: %v", err)
		}
	})
}

// Handlers that are removed, or that the informer did not take, are not kept.
func TestSet_ForgetsHandlersThatAreNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, 0)
		defer r.end()
		for range 10 {
			r.add(t, nil, 0)
			if err := r.set.Remove(r.registration); err != nil {
				t.Fatal(err)
			}
		}
		r.informer.err = errors.New("stopped")
		for range 10 {
			if _, err := r.set.Add(r.recorder, cache.HandlerOptions{}, nil, 0); err == nil {
				t.Fatal("no error")
			}
		}
		if _, err := r.quiesce(t); err != nil || len(r.set.owned) != 1 {
			t.Errorf("%d handlers, %v", len(r.set.owned), err)
		}
	})
}

func TestSet_WithoutOwner(t *testing.T) {
	i := &informer{}
	s := NewSet(i, &feed{}, nil)
	calls := 0
	if _, err := s.Add(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { calls++ }}, cache.HandlerOptions{}, nil, 0); err != nil {
		t.Fatal(err)
	}
	var before, after any = x("a", 1), x("a", 2)
	if allocs := testing.AllocsPerRun(100, func() { i.handlers[0].OnUpdate(before, after) }); allocs != 0 {
		t.Errorf("a call allocates %v times", allocs)
	}
	s.OwnershipChanged()
	if err := s.Quiesce(t.Context()); err != nil || calls == 0 {
		t.Errorf("%d calls, %v", calls, err)
	}
	if h := i.handlers[0].(*handler); h.ended != nil || h.turn != nil || s.owned != nil {
		t.Errorf("it has a goroutine")
	}
}
