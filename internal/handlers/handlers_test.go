package handlers

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

// feed is what a test says that an informer was given.
type feed struct {
	mu      sync.Mutex
	events  uint64
	last    time.Time
	objects int
}

func (f *feed) Events() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.events
}

func (f *feed) LastEvent() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *feed) Objects() int { return f.objects }

func (f *feed) add() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	f.last = time.Now()
}

// informer takes handlers, and lets a test call them.
type informer struct {
	cache.SharedInformer
	handlers []cache.ResourceEventHandler
	removed  int
}

type token struct {
	cache.ResourceEventHandlerRegistration
}

func (i *informer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, h)
	return &token{}, nil
}

func (i *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	i.removed++
	return nil
}

// add adds a handler that counts its calls.
func add(t *testing.T, s *Set, group *Group) (registration cache.ResourceEventHandlerRegistration, calls *int) {
	t.Helper()
	calls = new(int)
	r, err := s.Add(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { *calls++ }}, cache.HandlerOptions{}, group, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r, calls
}

// The counters are wrong for a handler that is added while an event is on its way into the cache:
// the event counts, and the handler gets it as one of the objects that are there. A handler that
// is idle has nothing waiting, and its backlog counts from zero again.
func TestSet_BacklogOfAnIdleHandlerCountsFromZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given, i := &feed{}, &informer{}
		s := NewSet(i, given, nil)
		add(t, s, nil)
		given.add() // on its way, and dropped
		if got := s.Stats(time.Now())[0].Backlog; got != 1 {
			t.Errorf("backlog = %d, want 1", got)
		}
		time.Sleep(2 * idleAfter)
		if got := s.Stats(time.Now())[0].Backlog; got != 0 {
			t.Errorf("backlog of an idle handler = %d, want 0", got)
		}
		given.add()
		if got := s.Stats(time.Now())[0].Backlog; got != 1 {
			t.Errorf("backlog after one more event = %d, want 1", got)
		}
		i.handlers[0].OnAdd(nil, false)
		if got := s.Stats(time.Now())[0]; got.Backlog != 0 || got.Delivered != 1 {
			t.Errorf("after the call: %+v", got)
		}
	})
}

// An informer has been given two objects and their deletions when the handler is added, and has not
// processed the deletions yet.
func TestSet_BacklogOfAHandlerThatIsAddedDuringADeletion(t *testing.T) {
	given, i := &feed{events: 4}, &informer{}
	s := NewSet(i, given, nil)
	add(t, s, nil)
	h := i.handlers[0]
	h.OnAdd(nil, true)
	h.OnAdd(nil, true)
	h.OnDelete(nil)
	h.OnDelete(nil)
	if got := s.Stats(time.Now())[0].Backlog; got != 0 {
		t.Errorf("backlog = %d, want 0", got)
	}
	given.add()
	if got := s.Stats(time.Now())[0].Backlog; got != 1 {
		t.Errorf("backlog after one more event = %d, want 1", got)
	}
}

// arrivingFeed gets a list after it has been read once.
type arrivingFeed struct{ feed }

func (f *arrivingFeed) Events() uint64 {
	defer f.arrive()
	return f.events
}

func (f *arrivingFeed) Objects() int {
	defer f.arrive()
	return f.objects
}

func (f *arrivingFeed) arrive() { f.events, f.objects = 3, 3 }

// Events that never come would wait until the handler is idle, which it may never be.
func TestSet_BacklogOfAHandlerThatIsAddedDuringAList(t *testing.T) {
	i := &informer{}
	s := NewSet(i, &arrivingFeed{}, nil)
	add(t, s, nil)
	for range 3 {
		i.handlers[0].OnAdd(nil, true)
	}
	if got := s.Stats(time.Now())[0]; got.Backlog != 0 || !got.BehindSince.IsZero() {
		t.Errorf("after the list: %+v", got)
	}
}

// mergingFeed merges an event for a handler after the events are counted, or late: after the time of the last one is read. The handler must allow that then.
type mergingFeed struct {
	feed

	handler *handler
	late    bool
}

func (f *mergingFeed) Events() uint64 {
	defer f.merge(false)
	return f.feed.Events()
}

func (f *mergingFeed) LastEvent() time.Time {
	defer f.merge(true)
	return f.feed.LastEvent()
}

func (f *mergingFeed) merge(late bool) {
	if f.handler != nil && f.late == late && f.handler.mu.TryLock() {
		f.handler.mu.Unlock()
		f.add()
		f.handler.merged(1)
	}
}

// With coalescing, events are merged at any time.
func TestSet_BacklogWhenAnEventIsMergedAtTheEndOfACall(t *testing.T) {
	given, i := &mergingFeed{}, &informer{}
	s := NewSet(i, given, nil)
	add(t, s, nil)
	given.handler = i.handlers[0].(*handler)
	given.add()
	i.handlers[0].OnAdd(nil, false)
	given.handler = nil
	if got := s.Stats(time.Now())[0]; got.Backlog != 0 || got.Delivered != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSet_BacklogWhenAnEventIsMergedDuringStats(t *testing.T) {
	for name, read := range map[string]func(s *Set){
		"stats":    func(s *Set) { s.Stats(time.Now()) },
		"progress": func(s *Set) { s.Progress(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				given, i := &mergingFeed{late: true}, &informer{}
				s := NewSet(i, given, nil)
				add(t, s, nil)
				given.add()
				i.handlers[0].OnAdd(nil, false)
				time.Sleep(2 * idleAfter)
				given.handler = i.handlers[0].(*handler)
				read(s)
				given.handler = nil
				given.add()
				i.handlers[0].OnAdd(nil, false)
				if got := s.Stats(time.Now())[0]; got.Backlog != 0 || !got.BehindSince.IsZero() {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

func TestSet_RegistrationOfAnotherInformerHasNoEffect(t *testing.T) {
	i := &informer{}
	s := NewSet(i, &feed{}, nil)
	r, calls := add(t, s, nil)
	if err := NewSet(&informer{}, &feed{}, nil).Remove(r); err != nil {
		t.Error(err)
	}
	i.handlers[0].OnAdd(nil, false)
	if len(s.Stats(time.Now())) != 1 || *calls != 1 {
		t.Errorf("the handler was removed from its own informer, calls = %d", *calls)
	}
}

// The informer may have events for a handler when it is removed: in its own call, or in another goroutine, which does not wait for the call in
// progress.
func TestSet_RemovedHandlerIsNotCalled(t *testing.T) {
	for name, remove := range map[string]func(remove func()){
		"in its call":          func(remove func()) { remove() },
		"in another goroutine": func(remove func()) { go remove() },
		"during its call": func(remove func()) {
			removed := make(chan struct{})
			go func() { defer close(removed); remove() }()
			<-removed
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 500 {
				removeWhileCalled(t, remove)
			}
		})
	}
}

// removeWhileCalled calls a handler until it has been removed, and some more times. Remove is called in the third call.
func removeWhileCalled(t *testing.T, remove func(remove func())) {
	t.Helper()
	i := &informer{}
	s := NewSet(i, &feed{}, nil)
	var r cache.ResourceEventHandlerRegistration
	calls, ended := 0, make(chan error, 1)
	var removed atomic.Bool
	r, err := s.Add(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		if calls++; calls == 3 {
			remove(func() {
				err := s.Remove(r)
				removed.Store(true)
				ended <- err
			})
		}
	}}, cache.HandlerOptions{}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for late := 0; late < 3; {
		before := calls
		if removed.Load() {
			late++
		}
		i.handlers[0].OnAdd(nil, false)
		if late > 0 && calls > before {
			t.Errorf("call %d begins after the removal", calls)
		}
	}
	if err := <-ended; err != nil || calls < 3 || i.removed != 1 {
		t.Errorf("%d calls; removed %d times from the informer, want once; %v", calls, i.removed, err)
	}
}

func TestGroup_CloseEndsItsHandlersOnly(t *testing.T) {
	i, g := &informer{}, NewGroup("gc", Options{})
	s := NewSet(i, &feed{}, nil)
	r, calls := add(t, s, g)
	_, other := add(t, s, nil)
	for range 2 {
		if added := g.Close(); len(added) != 1 || added[0] != r {
			t.Errorf("Close returns %v", added)
		}
	}
	for _, h := range i.handlers {
		h.OnAdd(nil, false)
	}
	if *calls != 0 || *other != 1 {
		t.Errorf("calls = %d, of another owner = %d", *calls, *other)
	}
	select {
	case <-g.Done():
	default:
		t.Error("not done")
	}
	if late, err := s.Add(cache.ResourceEventHandlerFuncs{}, cache.HandlerOptions{}, g, 0); late == nil || err != nil || i.removed != 1 {
		t.Errorf("a handler that is added to a closed group: registration %v, error %v, removed %d times", late, err, i.removed)
	}
}

func TestSet_ProgressIsOfOneGroup(t *testing.T) {
	i, given, g := &informer{}, &feed{}, NewGroup("gc", Options{})
	s := NewSet(i, given, nil)
	add(t, s, g)
	add(t, s, nil)
	given.add()
	i.handlers[1].OnAdd(nil, false)
	if delivered, waiting := s.Progress(g); delivered != 0 || !waiting {
		t.Errorf("delivered %d, waiting %v", delivered, waiting)
	}
	i.handlers[0].OnAdd(nil, false)
	if delivered, waiting := s.Progress(g); delivered != 1 || waiting {
		t.Errorf("after the call: delivered %d, waiting %v", delivered, waiting)
	}
}
