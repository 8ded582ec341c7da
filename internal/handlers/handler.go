package handlers

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/status"
)

// handler wraps an event handler. It counts the calls, and drops them after its group is closed.
// client-go makes one call at a time.
type handler struct {
	next  cache.ResourceEventHandler
	name  string
	set   *Set
	group *Group // nil: calls end with the informer
	// coalescer merges events that are waiting; nil: each event is a call.
	coalescer *coalescer
	// resync is the handler's own resync; nil: client-go's, if the informer has a period.
	resync *resync
	// own is client-go's registration. It is set before run starts.
	own cache.ResourceEventHandlerRegistration

	begun bool          // run has started, or will never start; guarded by the set's mu
	ended chan struct{} // closes after the last call; nil: the handler does not need run

	mu        sync.Mutex
	removed   bool
	before    uint64 // the number of events that it does not get, modulo 2^64
	taken     uint64 // the number of events that it has got, or that were merged with others
	merges    uint64 // the number of events that were merged with others
	delivered uint64 // the number of all calls
	running   time.Time
	last      time.Time // the end of the last call, or the time when the handler was added
	panics    panics
	behind    time.Time // since when events were waiting at the end of each call; zero: none were
}

// String returns the handler's own name, for client-go's texts.
func (h *handler) String() string { return h.name }

// OnAdd implements cache.ResourceEventHandler.
func (h *handler) OnAdd(obj any, isInInitialList bool) { h.handle(addition(obj, isInInitialList)) }

// OnUpdate implements cache.ResourceEventHandler.
func (h *handler) OnUpdate(oldObj, newObj any) { h.handle(update(oldObj, newObj)) }

// OnDelete implements cache.ResourceEventHandler.
func (h *handler) OnDelete(obj any) { h.handle(h.set.deletion(obj)) }

// handle handles an event of the informer.
func (h *handler) handle(e event) {
	if h.coalescer != nil {
		h.coalescer.put(e)
		return
	}
	h.deliver(e)
}

// deliver calls the handler, after a call of its resync that is in progress.
func (h *handler) deliver(e event) {
	if h.resync != nil {
		h.resync.deliver(e)
		return
	}
	h.call(e)
}

func (h *handler) call(e event) {
	if !h.begin() { // it has been removed
		return
	}
	defer h.end(e.counts)
	if h.group != nil && h.group.options.Recovery {
		defer h.recovered(e)
	}
	h.unpack(&e)
	switch {
	case e.moved:
		moved(h.next, e.obj)
	case e.kind == added:
		h.next.OnAdd(e.obj, e.initial)
	case e.kind == updated:
		h.next.OnUpdate(e.old, e.obj)
	case e.kind == deleted:
		h.next.OnDelete(e.obj)
	}
}

// begin reports whether a call is allowed. If it is, end must be called after it.
func (h *handler) begin() bool {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.removed || h.group != nil && !h.group.calls.Begin() {
		return false
	}
	h.running = now
	return true
}

func (h *handler) end(events uint64) {
	if h.group != nil {
		defer h.group.calls.End()
	}
	given := h.set.feed.Events()
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running, h.last = time.Time{}, now
	h.delivered++
	h.taken += events
	if int64(given-h.before-h.taken) < 0 { //nolint:gosec // a difference of counters
		// The handler was added while deletions were on their way: it gets the objects and their
		// deletions. Otherwise as many later events would not count as waiting.
		h.before = given - h.taken
	}
	switch waiting := h.waitingLocked(given); {
	case waiting == 0:
		h.behind = time.Time{}
	case h.behind.IsZero():
		h.behind = now
	}
}

// merged counts events for which there is no call.
func (h *handler) merged(events uint64) {
	if events == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken += events
	h.merges += events
}

// remove prevents further calls.
func (h *handler) remove() {
	h.mu.Lock()
	h.removed = true
	h.mu.Unlock()
	if h.coalescer != nil {
		h.coalescer.discard()
	}
}

// waitingLocked returns the number of the informer's events that the handler has not got yet. The
// caller holds mu.
func (h *handler) waitingLocked(given uint64) int {
	return int(max(0, int64(given-h.before-h.taken))) //nolint:gosec // a difference of counters
}

// stats returns the status of h. Given is the number of the informer's events, and lastEvent the time
// of the last one.
func (h *handler) stats(now time.Time, given uint64, lastEvent time.Time) status.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := status.Handler{Handler: h.name, Delivered: h.delivered, Merged: h.merges, RunningSince: h.running, BehindSince: h.behind, Backlog: h.waitingLocked(given)}
	if h.group != nil {
		s.Lease = h.group.name
	}
	h.panics.describe(&s)
	switch {
	case h.running.IsZero() && now.Sub(h.last) > idleAfter && now.Sub(lastEvent) > idleAfter:
		// A handler that is not called has no waiting events. The informer was processing an
		// update when the handler was added, or has left out an event without a change.
		h.before = given - h.taken
		h.behind = time.Time{}
		s.Backlog, s.BehindSince = 0, time.Time{}
	case s.Backlog > 0 && s.BehindSince.IsZero() && !h.running.IsZero():
		s.BehindSince = h.running
	}
	return s
}
