package handlers

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/status"
)

// handler is an event handler whose calls are counted, and end with those of its group. client-go
// makes one call at a time.
type handler struct {
	next  cache.ResourceEventHandler
	name  string
	set   *Set
	group *Group // nil: its calls end with the informer

	mu        sync.Mutex
	removed   bool
	before    uint64 // events that it does not get, modulo 2^64
	taken     uint64 // of those that it does get
	delivered uint64 // all calls
	running   time.Time
	last      time.Time // the end of the last call; before the first, when it was added
	behind    time.Time // since when more was waiting whenever a call ended; zero: it was not
}

// String returns the handler's own name, for client-go's texts.
func (h *handler) String() string { return h.name }

// OnAdd implements cache.ResourceEventHandler.
func (h *handler) OnAdd(obj any, isInInitialList bool) {
	if h.begin() {
		defer h.end(1)
		h.next.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate implements cache.ResourceEventHandler. A resync, which no event has caused, has
// one object twice.
func (h *handler) OnUpdate(oldObj, newObj any) {
	events := uint64(1)
	if old := reflect.ValueOf(oldObj); old.Kind() == reflect.Pointer && oldObj == newObj {
		events = 0
	}
	if h.begin() {
		defer h.end(events)
		h.next.OnUpdate(oldObj, newObj)
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (h *handler) OnDelete(obj any) {
	if h.begin() {
		defer h.end(1)
		h.next.OnDelete(obj)
	}
}

// begin reports whether a call may be made, which ends with end.
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
	switch waiting := h.waitingLocked(given); {
	case waiting == 0:
		h.behind = time.Time{}
	case h.behind.IsZero():
		h.behind = now
	}
}

// remove lets no call begin any more.
func (h *handler) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = true
}

// waitingLocked returns how many events the handler is still to get, of those given to the
// informer. The caller holds mu.
func (h *handler) waitingLocked(given uint64) int {
	return int(max(0, int64(given-h.before-h.taken))) //nolint:gosec // a difference of counters
}

// idleAfter is how long a handler without a backlog is not called, at least.
const idleAfter = time.Second

// stats returns how h does, whose informer was given so many events, the last one at lastEvent.
func (h *handler) stats(now time.Time, given uint64, lastEvent time.Time) status.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := status.Handler{Handler: h.name, Delivered: h.delivered, RunningSince: h.running, BehindSince: h.behind, Backlog: h.waitingLocked(given)}
	if h.group != nil {
		s.Lease = h.group.name
	}
	switch {
	case h.running.IsZero() && now.Sub(h.last) > idleAfter && now.Sub(lastEvent) > idleAfter:
		// A handler that is not called has nothing waiting. The informer was in the middle
		// of an update when the handler was added, or has left out an event without a change.
		h.before = given - h.taken
		h.behind = time.Time{}
		s.Backlog, s.BehindSince = 0, time.Time{}
	case s.Backlog > 0 && s.BehindSince.IsZero() && !h.running.IsZero():
		s.BehindSince = h.running
	}
	return s
}
