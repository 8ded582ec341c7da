package handlers

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/status"
)

// Feed says what an informer has been given for its handlers. Its methods do not block.
type Feed interface {
	// Events is how many objects it has been given so far, in lists, as changes and as
	// deletions, and LastEvent when that was last; zero: never.
	Events() uint64
	LastEvent() time.Time
	// Objects is how many objects it has.
	Objects() int
}

// Set are the handlers of one informer. It is safe for concurrent use.
type Set struct {
	informer cache.SharedInformer
	feed     Feed

	mu  sync.Mutex // not held over a call of informer
	all []*handler // in the order in which they were added
}

// NewSet returns the handlers of informer, none so far. Feed says what informer is given.
func NewSet(informer cache.SharedInformer, feed Feed) *Set {
	return &Set{informer: informer, feed: feed}
}

// Add adds next to the informer, as a handler of group if that is not nil, and counts its calls
// from the first one on. If group is closed, or is closed meanwhile, next is removed again, which
// is no error. Errors are the informer's. It waits for the informer's locks.
func (s *Set) Add(next cache.ResourceEventHandler, opts cache.HandlerOptions, group *Group) (cache.ResourceEventHandlerRegistration, error) {
	h := &handler{next: next, name: nameOf(next), set: s, group: group, last: time.Now()}
	// It gets an addition for each object that is there, and each event from now on.
	h.before = s.feed.Events() - uint64(s.feed.Objects()) //nolint:gosec // modulo 2^64
	own, err := s.informer.AddEventHandlerWithOptions(h, opts)
	if err != nil {
		return nil, err
	}
	r := &registration{ResourceEventHandlerRegistration: own, handler: h}
	s.mu.Lock()
	s.all = append(s.all, h)
	s.mu.Unlock()
	if group != nil && !group.keep(r) {
		_ = s.Remove(r)
	}
	return r, nil
}

// Remove removes a handler: once it has returned, no call of the handler begins any more. The
// registration of another informer has no effect on its handler. It waits for the informer's
// locks.
func (s *Set) Remove(handle cache.ResourceEventHandlerRegistration) error {
	r, is := handle.(*registration)
	switch {
	case !is || r == nil:
		return s.informer.RemoveEventHandler(handle)
	case r.handler.set != s:
		return s.informer.RemoveEventHandler(r.ResourceEventHandlerRegistration)
	}
	r.handler.remove()
	if r.handler.group != nil {
		r.handler.group.forget(r)
	}
	if err := s.informer.RemoveEventHandler(r.ResourceEventHandlerRegistration); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *handler) bool { return other == r.handler })
	return nil
}

// Stats returns the status of each handler, in the order in which they were added.
func (s *Set) Stats(now time.Time) []status.Handler {
	var few [4]*handler
	s.mu.Lock()
	all := append(few[:0], s.all...)
	s.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	stats := make([]status.Handler, len(all))
	given, last := s.feed.Events(), s.feed.LastEvent()
	for i, h := range all {
		stats[i] = h.stats(now, given, last)
	}
	return stats
}

// Progress returns how often the handlers of group have been called, and whether calls are
// running or waiting.
func (s *Set) Progress(group *Group) (delivered uint64, waiting bool) {
	var own []*handler
	s.mu.Lock()
	for _, h := range s.all {
		if h.group == group {
			own = append(own, h)
		}
	}
	s.mu.Unlock()
	now, given, last := time.Now(), s.feed.Events(), s.feed.LastEvent()
	for _, h := range own {
		stats := h.stats(now, given, last)
		delivered += stats.Delivered
		waiting = waiting || stats.Backlog > 0 || !stats.RunningSince.IsZero()
	}
	return delivered, waiting
}
