package handlers

import (
	"time"

	"github.com/gvrkit/gvrkit/status"
)

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

// waitingLocked returns the number of the informer's events that the handler has not got yet. The
// caller holds mu.
func (h *handler) waitingLocked(given uint64) int {
	return int(max(0, int64(given-h.before-h.taken))) //nolint:gosec // a difference of counters
}

// stats returns the status of h.
func (h *handler) stats(now time.Time) status.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	given := h.set.feed.Events() // not before the lock, as in end
	lastEvent := h.set.feed.LastEvent()
	s := status.Handler{Handler: h.name, Delivered: h.delivered, Merged: h.merges, RunningSince: h.running, BehindSince: h.behind, Backlog: h.waitingLocked(given)}
	if h.group != nil {
		s.Lease = h.group.name
	}
	h.panics.describe(&s)
	switch {
	case !h.delivers.Load() && now.Sub(h.last) > idleAfter && now.Sub(lastEvent) > idleAfter:
		// A handler that is not called, or only for a resync, has no waiting events. The informer was processing an
		// update when the handler was added, or has left out an event without a change.
		h.before = given - h.taken
		h.behind = time.Time{}
		s.Backlog, s.BehindSince = 0, time.Time{}
	case s.Backlog > 0 && s.BehindSince.IsZero() && !h.running.IsZero():
		s.BehindSince = h.running
	}
	return s
}
