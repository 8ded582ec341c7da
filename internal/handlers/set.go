package handlers

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

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
	// Name replaces the name of the informer in the names of checkers; empty: it stays.
	Name string
	// Unpack, if not nil, returns the object for handlers of an object of the informer. It must not be changed after
	// the first Add. Handlers of [OfPacked] get the object of the informer.
	Unpack func(stored any) any
	// UnpackLike is Unpack for the earlier object of an update, of which later is the new one. Both are set, or none.
	UnpackLike func(stored, later any) any
	// Moved, if not nil, reports whether a deleted object of the informer exists on the server, and returns the object.
	// Handlers then do not get it as deleted: see [MovedHandler].
	Moved func(deleted any) (object any, is bool)
	// Owner, if not nil, says for which objects handlers may be called. It must not be changed after the first Add. See
	// OwnershipChanged and Quiesce.
	Owner Owner
	// Pack, if not nil, returns an object in the form of the informer. It must not be changed either.
	Pack func(object runtime.Object) runtime.Object

	informer cache.SharedInformer
	feed     Feed
	logPanic LogPanic
	running  inflight.Counter // goroutines
	removals inflight.Counter // calls of informer, until it begins to stop

	mu      sync.Mutex // not held during a call of informer
	all     []*handler // in the order in which they were added
	started bool       // the informer runs
	owned   []*handler // with an Owner: those of which a call may be in progress, or begin
}

// LogPanic logs the recovered panic of a handler of a lease for the object with that key. It may be
// called concurrently.
type LogPanic func(handler, lease, key, text string, stack []byte)

// NewSet returns an empty set for informer. Feed counts the events of informer. LogPanic may be nil.
func NewSet(informer cache.SharedInformer, feed Feed, logPanic LogPanic) *Set {
	return &Set{informer: informer, feed: feed, logPanic: logPanic}
}

// ErrNil is the error of a nil handler.
var ErrNil = errors.New("the event handler is nil")

// isNil reports whether each call of a handler would panic: it is nil, or a nil pointer whose methods are those of the value.
func isNil[Handler any](next Handler) bool {
	v := reflect.ValueOf(next)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Implements(reflect.TypeFor[Handler]())
}

// Add adds next to the informer, as a handler of group if group is not nil, and counts all its calls.
// If group is closed before or during the call, Add removes next again, without an error. It returns [ErrNil], and
// errors of the informer. It waits for the informer's locks. Period is the period of a resync of next, if
// it is more than zero. The one in opts must be zero: with client-go's resync, an informer withholds updates.
func (s *Set) Add(next cache.ResourceEventHandler, opts cache.HandlerOptions, group *Group, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	if packed, is := next.(*packedHandler); isNil(next) || is && isNil(packed.next) {
		return nil, ErrNil
	}
	logger := klog.Background()
	if opts.Logger != nil {
		logger = *opts.Logger
	}
	h := s.wrap(next, group, period, logger)
	s.own(h) // calls begin before the informer returns
	own, err := s.informer.AddEventHandlerWithOptions(h, opts)
	if err != nil {
		h.remove() // so that it is not kept in owned
		return nil, err
	}
	r := &registration{ResourceEventHandlerRegistration: own, handler: h}
	s.mu.Lock()
	h.own = own
	s.all = append(s.all, h)
	if s.started {
		s.startLocked(h)
	}
	s.mu.Unlock()
	if group != nil && !group.keep(r) {
		_ = s.Remove(r)
	}
	return r, nil
}

// wrap returns next as a handler of s.
func (s *Set) wrap(next cache.ResourceEventHandler, group *Group, period time.Duration, logger klog.Logger) *handler {
	h := &handler{next: next, name: nameOf(next), set: s, group: group, last: time.Now()}
	// The handler gets an addition for each present object, and each later event. If a list arrives meanwhile, the number of waiting
	// events is too small, which the next call corrects.
	h.before = -uint64(s.feed.Objects()) //nolint:gosec // modulo 2^64
	h.before += s.feed.Events()
	if group != nil && group.options.Coalescing {
		h.coalescer = newCoalescer(h, logger)
	}
	if period > 0 {
		h.resync = newResync(h, period, logger)
	}
	if s.Owner != nil {
		h.ownership = newOwnership(h, logger)
	}
	if h.resync != nil || h.ownership != nil {
		h.turn = make(chan struct{}, 1)
	}
	if h.coalescer != nil || h.turn != nil {
		h.ended = make(chan struct{})
	}
	return h
}

// Remove removes a handler. After it has returned, no call of the handler begins. A call that has begun continues, also if it has not
// reached the handler yet. Remove does not affect the handler of another informer's registration. It waits for the informer's locks, but
// never for a call of a handler.
func (s *Set) Remove(handle cache.ResourceEventHandlerRegistration) error {
	r, is := handle.(*registration)
	switch {
	case !is || r == nil:
		return s.removeFromInformer(handle)
	case r.handler.set != s:
		return s.removeFromInformer(r.ResourceEventHandlerRegistration)
	}
	r.handler.remove()
	if r.handler.group != nil {
		r.handler.group.forget(r)
	}
	if err := s.removeFromInformer(r.ResourceEventHandlerRegistration); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.handler.ended != nil && !r.handler.begun { // the informer has never run
		r.handler.begun = true
		close(r.handler.ended)
	}
	s.all = slices.DeleteFunc(s.all, func(other *handler) bool { return other == r.handler })
	s.pruneLocked()
	return nil
}

// removeFromInformer removes a registration from the informer. An informer that stops removes all of them, and holds its locks until
// the last call of a handler has returned, which may be the call that removes a handler: then removeFromInformer does nothing.
func (s *Set) removeFromInformer(own cache.ResourceEventHandlerRegistration) error {
	if !s.removals.Begin() {
		return nil
	}
	defer s.removals.End()
	return s.informer.RemoveEventHandler(own)
}

// Start starts the goroutines of handlers whose events are merged or parked, or that have a resync of their own. It is
// called once, before the informer runs. Handlers that are added later have their goroutines at once.
//
// The informer must run with the context that Start returns, and the caller must call stop after it. The context ends after ctx, when no call
// of Remove waits for the informer's locks any more.
func (s *Set) Start(ctx context.Context) (running context.Context, stop func()) {
	s.mu.Lock()
	s.started = true
	for _, h := range s.all {
		s.startLocked(h)
	}
	s.mu.Unlock()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		s.removals.Close()
		<-s.removals.Done()
		cancel()
	})
	return running, func() {
		forget()
		cancel()
	}
}

// Wait waits for the goroutines, which end with the informer. It is called after the informer has ended.
func (s *Set) Wait() {
	s.running.Close()
	<-s.running.Done()
}

// startLocked starts the goroutine of h, if h needs one and it has not been started. The caller holds mu.
func (s *Set) startLocked(h *handler) {
	switch {
	case h.ended == nil || h.begun:
	case !s.running.Begin(): // the informer has ended
		h.begun = true
		close(h.ended)
	default:
		h.begun = true
		go func() {
			defer s.running.End()
			h.run(stopOf(h.own))
		}()
	}
}

// run makes the calls that client-go does not make, until stop closes, and waits for the last one.
func (h *handler) run(stop <-chan struct{}) {
	defer close(h.ended)
	defer h.discard()
	var others sync.WaitGroup
	defer others.Wait()
	var runs []func(stop <-chan struct{})
	if h.coalescer != nil {
		runs = append(runs, h.coalescer.run)
	}
	if h.resync != nil {
		runs = append(runs, h.resync.run)
	}
	if h.ownership != nil {
		runs = append(runs, h.ownership.run)
	}
	for _, run := range runs[1:] {
		others.Go(func() { run(stop) })
	}
	runs[0](stop)
}

// discard releases the objects that h keeps for later calls, of which there are none: it has ended, and so have the calls of client-go.
func (h *handler) discard() {
	if h.coalescer != nil {
		h.coalescer.discard()
	}
	if h.resync != nil {
		h.resync.objects = map[cache.ObjectName]any{}
	}
	if h.ownership != nil {
		h.ownership.parked = pending{}
	}
}

// stopOf returns the channel that closes when client-go makes no more calls for a registration.
func stopOf(own cache.ResourceEventHandlerRegistration) <-chan struct{} {
	return own.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
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
	for i, h := range all {
		stats[i] = h.stats(now)
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
	now := time.Now()
	for _, h := range own {
		stats := h.stats(now)
		delivered += stats.Delivered
		waiting = waiting || stats.Backlog > 0 || !stats.RunningSince.IsZero()
	}
	return delivered, waiting
}
