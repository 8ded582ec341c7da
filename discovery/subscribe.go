package discovery

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// Subscribe returns events for a range statement: first an Added for each served type, then the changes, in
// order for each type. The events are those of [Resolver.Run]. While Run does not run, there are no
// changes, and the served types are those of the last run. The sequence ends with ctx, or at the end of the
// loop. It may be used several times and by several goroutines: each loop gets all events.
//
// The loop may be slow: waiting events of one type are merged to at most two. A type that was removed and
// added again has a Removed and an Added. A type that was added and removed during one iteration has no
// event. Changes of the labels of CRDs have no events, except with [WithLabelChanges].
func (r *Resolver) Subscribe(ctx context.Context, opts ...SubscribeOption) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		queue := &eventQueue{news: make(chan struct{}, 1), informers: typefacts.ForInformers(ctx)}
		for _, opt := range opts {
			if opt != nil {
				opt.applyToQueue(queue)
			}
		}
		r.addSubscriber(queue)
		defer r.removeSubscriber(queue)
		if !queue.informers {
			r.widen()
		}
		for {
			for event := range queue.take {
				if ctx.Err() != nil || !yield(event) {
					return
				}
			}
			select {
			case <-queue.news:
			case <-ctx.Done():
				return
			}
		}
	}
}

// SubscribeOption selects the events of one subscriber. Nil has no effect.
type SubscribeOption interface{ applyToQueue(*eventQueue) }

type subscribeOptionFunc func(*eventQueue)

func (f subscribeOptionFunc) applyToQueue(b *eventQueue) { f(b) }

// WithLabelChanges adds events for [LabelsChanged], for subscribers that select types by the labels of
// their CRDs.
func WithLabelChanges() SubscribeOption {
	return subscribeOptionFunc(func(b *eventQueue) { b.labels = true })
}

// eventQueue has the waiting events of one subscriber: at most two for each type.
type eventQueue struct {
	news      chan struct{} // has one if there are events
	labels    bool          // it wants to know of LabelsChanged
	informers bool          // the subscriber is a factory, whose informers have asked for their types

	mu      sync.Mutex // never held while an event is handled
	pending map[schema.GroupResource][]Event
	order   []schema.GroupResource // of pending, first to change first
	// unserved are the types that the subscriber knows as removed, and whose CRD may still exist: its deletion is news.
	unserved map[schema.GroupResource]bool
}

// wanted returns the events for the subscriber. It does not write to events, which other subscribers also
// get.
func (b *eventQueue) wanted(events []Event) []Event {
	unwanted := func(e Event) bool {
		return slices.Contains(e.Changes, LabelsChanged) && (!b.informers || !e.identifies())
	}
	if b.labels || !slices.ContainsFunc(events, unwanted) {
		return events
	}
	var wanted []Event
	for _, event := range events {
		if unwanted(event) {
			event.Changes = slices.DeleteFunc(slices.Clone(event.Changes), func(c Change) bool { return c == LabelsChanged })
			if len(event.Changes) == 0 {
				continue
			}
		}
		wanted = append(wanted, event)
	}
	return wanted
}

// identifies reports whether it has become known what serves the type. Informers need it to recognize
// another type with the same name.
func (e Event) identifies() bool {
	return e.Old.Backing == BackingUnknown && e.Resource.Backing != BackingUnknown || e.Old.CRDUID == "" && e.Resource.CRDUID != ""
}

// put adds events, and notifies the subscriber.
func (b *eventQueue) put(events []Event) {
	events = b.wanted(events)
	if len(events) == 0 {
		return
	}
	b.mu.Lock()
	for _, event := range events {
		gr := event.Resource.GVR.GroupResource()
		old, waits := b.pending[gr]
		switch now := combined(old, event, b.unserved[gr]); {
		case len(now) == 0:
			delete(b.pending, gr)
			b.order = slices.DeleteFunc(b.order, func(other schema.GroupResource) bool { return other == gr })
		default:
			if !waits {
				b.order = append(b.order, gr)
			}
			if b.pending == nil {
				b.pending = map[schema.GroupResource][]Event{}
			}
			b.pending[gr] = now
		}
	}
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default: // it has been notified
	}
}

// take yields the waiting events, one type after the other, until there are none.
func (b *eventQueue) take(yield func(Event) bool) {
	for {
		event, some := b.next()
		if !some || !yield(event) {
			return
		}
	}
}

// next removes the first event of the type that has waited longest.
func (b *eventQueue) next() (event Event, some bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.order) == 0 {
		return Event{}, false
	}
	gr := b.order[0]
	waiting := b.pending[gr]
	if len(waiting) == 1 {
		b.order = b.order[1:]
		delete(b.pending, gr)
	} else {
		b.pending[gr] = waiting[1:]
	}
	if taken := waiting[0]; taken.Type == Removed && taken.Evidence.Kind != CRDDeleted {
		if b.unserved == nil {
			b.unserved = map[schema.GroupResource]bool{}
		}
		b.unserved[gr] = true
	} else {
		delete(b.unserved, gr)
	}
	return waiting[0], true
}

// combined merges now into the waiting events of one type. Waiting is empty, one event, or Removed and
// Added. Unserved reports whether the deletion of a CRD is news though the subscriber knows no such type.
func combined(waiting []Event, now Event, unserved bool) []Event {
	if len(waiting) == 0 {
		return []Event{now}
	}
	first, last := waiting[0], waiting[len(waiting)-1]
	switch {
	case last.Type == Removed && now.Type == Added:
		return []Event{last, now}
	case now.Type == Removed && first.Type == Added && (!unserved || now.Evidence.Kind != CRDDeleted):
		return nil // the subscriber does not know the type
	case now.Type == Removed && first.Type == Removed: // the subscriber knows the first one
		now.Resource, now.Evidence = first.Resource, now.Evidence.after(first.Evidence)
		return []Event{now}
	case now.Type == Removed:
		return []Event{now}
	case last.Type == Added: // Changed
		last.Resource = now.Resource
		return append(slices.Clip(waiting[:len(waiting)-1]), last)
	}
	now.Old = last.Old
	if before, after := now.Old.CRDUID, now.Resource.CRDUID; before != "" && after != "" && before != after { // something else has served the type in between
		evidence := Evidence{Kind: CRDDeleted, CRDUID: before, At: time.Now()}
		return []Event{{Type: Removed, Resource: now.Old, Evidence: evidence}, {Type: Added, Resource: now.Resource}}
	}
	now.Changes = union(last.Changes, now.Changes)
	return []Event{now}
}

// after returns the evidence about the type that was removed before, and has been removed again.
func (e Evidence) after(before Evidence) Evidence {
	switch {
	case before.Kind == CRDDeleted:
		return before
	case before.CRDUID != "" && e.CRDUID != "" && before.CRDUID != e.CRDUID:
		e.Kind, e.CRDUID = CRDDeleted, before.CRDUID // the first CRD was deleted
	}
	return e
}

func union(a, b []Change) []Change {
	out := slices.Clip(a)
	for _, change := range b {
		if !slices.Contains(a, change) {
			out = append(out, change)
		}
	}
	return out
}

// addSubscriber adds a subscriber, which gets an Added for each served type.
func (r *Resolver) addSubscriber(queue *eventQueue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queues == nil {
		r.queues = map[*eventQueue]bool{}
	}
	r.queues[queue] = true
	if r.last != nil && (queue.informers || !r.unreported) {
		queue.put(added(r.last))
	}
}

// added returns an Added event of each type of c.
func added(c *snapshot) (events []Event) {
	for _, group := range c.groups {
		for i := range group.types {
			events = append(events, Event{Type: Added, Resource: group.types[i].resource})
		}
	}
	return events
}

// removeSubscriber removes a subscriber.
func (r *Resolver) removeSubscriber(queue *eventQueue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.queues, queue)
}
