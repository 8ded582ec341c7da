package churn

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// EventKind is the kind of an event that a handler has got.
type EventKind string

// The kinds. A move is the event of an object that exists, but is no longer in the set of
// namespaces that the subject watches.
const (
	Added   EventKind = "add"
	Updated EventKind = "update"
	Deleted EventKind = "delete"
	Moved   EventKind = "move"
)

// begins is the time, at most, between the beginning of a call of a handler and its record.
const begins = 2 * time.Second

// Event is one call of a handler.
type Event struct {
	Kind    EventKind
	Old     Observation // of an update
	New     Observation // of a deletion, the last state
	Initial bool        // of an addition: it is part of the initial list
	At      time.Time
}

// String describes the event.
func (e Event) String() string {
	switch {
	case e.Kind == Updated:
		return fmt.Sprintf("update %v from %s (content %s)", e.New, e.Old.ResourceVersion, e.Old.Serial)
	case e.Initial:
		return fmt.Sprintf("add %v, initial", e.New)
	}
	return fmt.Sprintf("%s %v", e.Kind, e.New)
}

// Recorder is a [cache.ResourceEventHandler] that records its calls. Its fields must be set before it is added to an
// informer, and not be changed. Its methods are safe for concurrent use.
type Recorder struct {
	View View
	// Since is when the handler was added. Zero is before the first operation.
	Since time.Time
	// Called is called in each call, in its goroutine, after the event has been recorded. N is the number of the call, beginning with 1. It
	// may block and panic. It may be nil.
	Called func(n int)

	mu      sync.Mutex
	events  []Event
	removed bool
	until   time.Time // of the removal
	running int       // calls that may have begun before the removal
	calling int       // calls that have been recorded, and have not returned
	late    []Event
	had     map[types.UID]bool // objects of the cache to which the handler was added
}

var _ cache.ResourceEventHandler = (*Recorder)(nil)

// OnAdd implements [cache.ResourceEventHandler].
func (r *Recorder) OnAdd(obj any, initial bool) {
	r.record(Event{Kind: Added, New: Observe(obj, r.View.Form), Initial: initial})
}

// OnUpdate implements [cache.ResourceEventHandler].
func (r *Recorder) OnUpdate(old, obj any) {
	r.record(Event{Kind: Updated, Old: Observe(old, r.View.Form), New: Observe(obj, r.View.Form)})
}

// OnDelete implements [cache.ResourceEventHandler].
func (r *Recorder) OnDelete(obj any) { r.record(Event{Kind: Deleted, New: Observe(obj, r.View.Form)}) }

// OnMoved records that an object has left the set of namespaces.
func (r *Recorder) OnMoved(obj any) { r.record(Event{Kind: Moved, New: Observe(obj, r.View.Form)}) }

func (r *Recorder) record(e Event) {
	e.At = time.Now()
	r.mu.Lock()
	r.events = append(r.events, e)
	switch {
	case r.removed && r.running > 0 && e.At.Before(r.until.Add(begins)):
		r.running--
	case r.removed:
		r.late = append(r.late, e)
	}
	n := len(r.events)
	r.calling++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.calling--
		r.mu.Unlock()
	}()
	if r.Called != nil {
		r.Called(n)
	}
}

// Removed records that the handler was removed: calls after that are violations. Running is the number of calls that may have begun
// before, and are recorded within two seconds: 1 if a call may be in progress, and 0 after the informer has ended. If Removed is called
// in a call of the handler, running is 0. A second call of Removed has an effect only with a smaller number.
func (r *Recorder) Removed(running int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calling > 0 {
		running = 0
	}
	if !r.removed {
		r.until = time.Now()
	}
	if !r.removed || running < r.running {
		r.removed, r.running = true, running
	}
}

// AddedTo records the objects that the cache had when the handler was added: those that a read before the addition and a read after it have
// returned in the same state. Call it at most once.
func (r *Recorder) AddedTo(has map[string]Observation) {
	had := map[types.UID]bool{}
	for _, o := range has {
		had[o.UID] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.had = had
}

// History returns the events so far.
func (r *Recorder) History() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...)
}

// Check returns the violations in the history so far. Call it from [Subject.AtRest] and [Subject.Stop]: at another time, the world may not
// have a write yet whose event the handler has got.
func (r *Recorder) Check(w *World) []Violation {
	r.mu.Lock()
	late, until := append([]Event(nil), r.late...), r.until
	view := r.View
	view.had = r.had
	r.mu.Unlock()
	events := r.History()
	found := append(CheckHistory(w, view, events), w.missed(r.View, r.Since, until, events)...)
	for _, e := range late {
		found = append(found, Violation{CalledAfterRemoval, fmt.Sprintf("%s: a removed handler was called: %v", r.View.Name, e)})
	}
	return found
}

// Has returns what the handler has now, by key: the last state of each object that was added and
// not deleted.
func (r *Recorder) Has() map[string]Observation {
	has := map[string]Observation{}
	for _, e := range r.History() {
		switch e.Kind {
		case Added, Updated:
			has[e.New.Key()] = e.New
		case Deleted, Moved:
			delete(has, e.New.Key())
		}
	}
	return has
}

// Got reports whether one of events is the addition of the object with this UID.
func Got(events []Event, uid types.UID) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Added && e.New.UID == uid })
}
