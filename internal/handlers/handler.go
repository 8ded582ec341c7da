package handlers

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// handler wraps an event handler. It counts the calls, and drops them after its group is closed.
// It has one call at a time, as in client-go.
type handler struct {
	next  cache.ResourceEventHandler
	name  string
	set   *Set
	group *Group // nil: calls end with the informer
	// coalescer merges events that are waiting; nil: each event is a call.
	coalescer *coalescer
	// resync is the handler's own resync; nil: none.
	resync *resync
	// ownership parks the events of objects on which the process may not act; nil: it may act on all objects.
	ownership *ownership
	// turn has a value during a call of the handler. Goroutines get it in the order in which they wait for it. It is nil
	// if only one goroutine calls the handler: client-go's, or the coalescer's.
	turn chan struct{}
	// delivers says that deliver is in progress: the handler has an event, or one waits for its turn.
	delivers atomic.Bool
	// own is client-go's registration. It is set before run starts.
	own cache.ResourceEventHandlerRegistration

	begun bool          // run has started, or will never start; guarded by the set's mu
	ended chan struct{} // closes after the last call; nil: the handler does not need run

	mu        sync.Mutex
	removed   bool
	before    uint64 // the number of events that it does not get, modulo 2^64
	taken     uint64 // the number of events that it has got, or that were merged with others or parked
	merges    uint64 // the number of events that were merged with others
	delivered uint64 // the number of all calls
	running   time.Time
	uid       types.UID     // of the object of the call in progress, if it needs ownership
	returned  chan struct{} // closes when uid becomes empty; nil: nothing waits for it
	last      time.Time     // the end of the last call for an event of the informer, or the time when the handler was added
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

// deliver waits for the call in progress, and then calls the handler.
func (h *handler) deliver(e event) {
	h.delivers.Store(true)
	defer h.delivers.Store(false)
	if h.takeTurn(nil) {
		defer h.releaseTurn()
	}
	h.call(e)
}

// call calls the handler, unless it has been removed, or the process may not act on the object. The caller has the turn.
func (h *handler) call(e event) {
	var uid types.UID
	if h.ownership != nil {
		uid = uidOf(e.obj)
	}
	// The call is in progress before ownership is checked: see Quiesce.
	if !h.begin(uid) || h.ownership != nil && !h.ownership.admit(&e, uid) {
		return
	}
	h.invoke(e)
}

// invoke makes the call for e, which begin has allowed. The caller has the turn.
func (h *handler) invoke(e event) {
	taken := e.counts
	if e.parked {
		taken = 0
	}
	defer h.end(taken, 0, 1)
	if e.moved {
		h.disown()
	}
	if h.group != nil && h.group.options.Recovery {
		defer h.recovered(e)
	}
	if h.resync != nil {
		h.resync.record(e)
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

// begin reports whether a call is allowed. If it is, end must be called after it. Uid is that of the object, if the handler
// has an ownership.
func (h *handler) begin(uid types.UID) bool {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.removed || h.group != nil && !h.group.calls.Begin() {
		return false
	}
	h.running, h.uid = now, uid
	return true
}

// end ends what begin has allowed. Calls is 0 if the handler was not called. Events is the number of the informer's
// events that it has got, or that were parked, and merges those that were merged with others.
func (h *handler) end(events, merges, calls uint64) {
	if h.group != nil {
		defer h.group.calls.End()
	}
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	given := h.set.feed.Events() // not before the lock: meanwhile, later events may be merged, which count as taken
	h.running = time.Time{}
	h.disownLocked()
	if calls > 0 && events > 0 { // others say nothing about events that wait
		h.last = now
	}
	h.delivered += calls
	h.taken += events
	h.merges += merges
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

// remove prevents further calls.
func (h *handler) remove() {
	h.mu.Lock()
	h.removed = true
	h.mu.Unlock()
	if h.coalescer != nil {
		h.coalescer.discard()
	}
}
