package handlers

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/inflight"
	"github.com/gvrkit/gvrkit/status"
)

// Feed counts the events that an informer gets for its handlers. Its methods do not block.
type Feed interface {
	// Events returns the number of objects so far in lists, changes and deletions, and LastEvent
	// the time of the last one; zero if there was none.
	Events() uint64
	LastEvent() time.Time
	// Objects returns the number of objects of the informer that Events has counted.
	Objects() int
}

// Set is the handlers of one informer. It is safe for concurrent use.
type Set struct {
	informer cache.SharedInformer
	feed     Feed
	logPanic LogPanic
	running  inflight.Counter // goroutines

	mu      sync.Mutex // not held during a call of informer
	all     []*handler // in the order in which they were added
	started bool       // the informer runs
}

// LogPanic logs the recovered panic of a handler of a lease for the object with that key. It may be
// called concurrently.
type LogPanic func(handler, lease, key, text string, stack []byte)

// NewSet returns an empty set for informer. Feed counts the events of informer. LogPanic may be nil.
func NewSet(informer cache.SharedInformer, feed Feed, logPanic LogPanic) *Set {
	return &Set{informer: informer, feed: feed, logPanic: logPanic}
}

// Add adds next to the informer, as a handler of group if group is not nil, and counts all its calls.
// If group is closed before or during the call, Add removes next again, without an error. It returns
// errors of the informer. It waits for the informer's locks.
func (s *Set) Add(next cache.ResourceEventHandler, opts cache.HandlerOptions, group *Group) (cache.ResourceEventHandlerRegistration, error) {
	h := &handler{next: next, name: nameOf(next), set: s, group: group, last: time.Now()}
	// The handler gets an addition for each present object, and each later event.
	h.before = s.feed.Events() - uint64(s.feed.Objects()) //nolint:gosec // modulo 2^64
	if group != nil && group.options.Coalescing {
		h.coalescer = newCoalescer(h, opts.Logger)
	}
	own, err := s.informer.AddEventHandlerWithOptions(h, opts)
	if err != nil {
		return nil, err
	}
	r := &registration{ResourceEventHandlerRegistration: own, handler: h}
	s.mu.Lock()
	if h.coalescer != nil {
		h.coalescer.own = own
	}
	s.all = append(s.all, h)
	if s.started {
		s.deliverLocked(h)
	}
	s.mu.Unlock()
	if group != nil && !group.keep(r) {
		_ = s.Remove(r)
	}
	return r, nil
}

// Remove removes a handler. After it has returned, no call of the handler begins. It does not affect
// the handler of another informer's registration. It waits for the informer's locks.
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
	if c := r.handler.coalescer; c != nil && c.begin() { // the informer has never run
		close(c.ended)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(other *handler) bool { return other == r.handler })
	return nil
}

// Start starts the goroutines of handlers whose events are merged. It is called before the informer
// runs, and may be called again. Handlers that are added later have their goroutines at once.
func (s *Set) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	for _, h := range s.all {
		s.deliverLocked(h)
	}
}

// Wait waits for the goroutines, which end with the informer. It is called after the informer has ended.
func (s *Set) Wait() {
	s.running.Close()
	<-s.running.Done()
}

// deliverLocked starts the goroutine of h, if h has one that has not been started. The caller holds mu.
func (s *Set) deliverLocked(h *handler) {
	switch c := h.coalescer; {
	case c == nil || !c.begin():
	case !s.running.Begin(): // the informer has ended
		close(c.ended)
	default:
		go func() {
			defer s.running.End()
			c.run()
		}()
	}
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

// Progress returns the number of calls of group's handlers, and whether calls are in progress or
// events are waiting.
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
