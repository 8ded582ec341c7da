package handlers

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Owner says on which objects of an informer the process may act. It is safe for concurrent use, and its methods do
// not block.
type Owner interface {
	// Owns reports whether the process may act on the object with this UID now. It may compare the clock, so that it
	// becomes false at any moment.
	Owns(uid types.UID) bool
	// Has reports whether the present view of the informer has the object. The informer removes other objects from its
	// cache, as objects that have moved.
	Has(uid types.UID) bool
}

// recheckEvery is the time between two looks at parked events that the view has and the process does not own: Owns
// may become true without a change of the view, as by a renewal just after the end of a term.
const recheckEvery = time.Second

// ownership stands between all callers of a handler and its calls. It parks the events of objects on which the
// process may not act, merged as those that wait for a handler with coalescing, and delivers them when it may. Events
// of an object that has a parked one are parked too, so that the order is kept.
type ownership struct {
	handler *handler
	owner   Owner
	logger  klog.Logger

	wake chan struct{} // has a value if parked events may have to be delivered

	// The turn of the handler guards the fields below.
	parked     pending
	rechecking bool // run looks again without a wake, or has one
}

func newOwnership(h *handler, logger klog.Logger) *ownership {
	o := &ownership{handler: h, owner: h.set.Owner, logger: logger, wake: make(chan struct{}, 1), parked: pending{reduce: h.set.reducedEvent}}
	if h.group != nil {
		o.parked.limit = h.group.options.States
	}
	return o
}

// admit reports whether the handler gets e now. Uid is that of its object. Otherwise it parks e, or drops a resync, and
// ends the call that begin has allowed. The caller has the turn.
func (o *ownership) admit(e *event, uid types.UID) bool {
	allowed := o.allows(e, uid)
	if allowed && !o.hasParked(e.obj) {
		return true
	}
	switch {
	case e.counts > 0:
		parked := *e
		// The registration of the handler does not wait for ownership: it may have synced before the call.
		parked.initial, parked.parked = false, true
		merged, _ := o.parked.add(parked)
		o.handler.end(e.counts, merged, 0)
	default: // the handler has the state of the resync, or a parked event has it
		o.handler.end(0, 0, 0)
	}
	if allowed {
		o.signal()
	} else {
		o.recheck(uid)
	}
	return false
}

// allows reports whether the handler may get e now. A deletion that the process may not handle, and of which the
// informer will get no later event, becomes moved.
func (o *ownership) allows(e *event, uid types.UID) bool {
	switch {
	case e.moved || uid == "" || o.owner.Owns(uid):
		return true
	case e.kind == deleted && !o.owner.Has(uid):
		e.moved = true
		return true
	}
	return false
}

// hasParked reports whether an event of the object is parked.
func (o *ownership) hasParked(obj any) bool {
	if o.parked.first == nil {
		return false
	}
	name, err := cache.DeletionHandlingObjectToName(obj)
	return err == nil && o.parked.byName[name] != nil
}

// signal wakes run. It does not block.
func (o *ownership) signal() {
	select {
	case o.wake <- struct{}{}:
	default: // it will look
	}
}

// recheck makes run look again, if the view has the object with this UID, which the process does not own.
func (o *ownership) recheck(uid types.UID) {
	if !o.rechecking && o.owner.Has(uid) {
		o.rechecking = true
		o.signal()
	}
}

// run delivers parked events when it is woken, until stop closes, and waits for the last call. The events that are
// parked then are lost.
func (o *ownership) run(stop <-chan struct{}) {
	var again <-chan time.Time
	for {
		select {
		case <-o.wake:
		case <-again:
		case <-stop:
			return
		}
		objects, recheck := o.look(stop)
		for _, parked := range objects {
			o.deliver(parked, stop)
		}
		again = nil
		if recheck {
			again = time.After(recheckEvery)
		}
	}
}

// look returns the objects whose parked events the handler may get now, in the order of parking, and whether there are
// others that the view has.
func (o *ownership) look(stop <-chan struct{}) (objects []*object, recheck bool) {
	if !o.handler.takeTurn(stop) {
		return nil, false
	}
	defer o.handler.releaseTurn()
	for parked := o.parked.first; parked != nil; parked = parked.after {
		e := *parked.head()
		switch uid := uidOf(e.obj); {
		case o.allows(&e, uid):
			objects = append(objects, parked)
		case o.owner.Has(uid):
			recheck = true
		}
	}
	o.rechecking = recheck
	return objects, recheck
}

// deliver calls the handler for the first event of an object that look has returned, unless it has been merged with a
// later one to none, waits for the deletion of an earlier object, or may not be delivered any more. A panic has the
// same effect as in client-go.
func (o *ownership) deliver(parked *object, stop <-chan struct{}) {
	h := o.handler
	if !h.takeTurn(stop) {
		return
	}
	defer h.releaseTurn()
	defer utilruntime.HandleCrashWithLogger(o.logger)
	if closed(stop) || parked.removed || parked.earlier != nil {
		return
	}
	e := *parked.head()
	uid := uidOf(e.obj)
	if !h.begin(uid) {
		return
	}
	if !o.allows(&e, uid) {
		h.end(0, 0, 0)
		o.recheck(uid)
		return
	}
	o.parked.take(parked)
	if !parked.removed {
		o.signal()
	}
	h.invoke(e)
}

// OwnershipChanged makes the handlers get their parked events whose objects the process owns now, and deletions whose
// objects the view no longer has. It must be called after each change of the view. It does not block, and may be
// called from a handler.
func (s *Set) OwnershipChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.owned {
		h.ownership.signal()
	}
}

// Quiesce waits until each call in progress for an object that the process does not own has returned. When Owns
// is false for an object before Quiesce is called, no call for that object is in progress after it has returned nil, and none
// begins until Owns is true again. This includes the calls of handlers that have been removed. Quiesce does not wait for
// other calls, for events without a call in progress, and for calls of OnMoved, which need no ownership. It
// returns the error of ctx if ctx ends before. A handler that calls it may wait for itself, until ctx ends.
func (s *Set) Quiesce(ctx context.Context) error {
	s.mu.Lock()
	s.pruneLocked()
	all := slices.Clone(s.owned)
	s.mu.Unlock()
	var calls []<-chan struct{}
	for _, h := range all {
		if uid, returned := h.inProgress(); uid != "" && !s.Owner.Owns(uid) {
			calls = append(calls, returned)
		}
	}
	for _, returned := range calls {
		select {
		case <-returned:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// own makes h one of the handlers that Quiesce and OwnershipChanged concern, if it has an ownership.
func (s *Set) own(h *handler) {
	if h.ownership == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pruneLocked()
	s.owned = append(s.owned, h)
}

// pruneLocked forgets handlers of which no call is in progress or begins later. The caller holds mu.
func (s *Set) pruneLocked() {
	s.owned = slices.DeleteFunc(s.owned, func(h *handler) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.removed && h.running.IsZero()
	})
}

// inProgress returns the UID of the object of the call in progress, and a channel that closes when it has returned. The
// UID is empty if there is no call, or the call needs no ownership.
func (h *handler) inProgress() (uid types.UID, returned <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uid != "" && h.returned == nil {
		h.returned = make(chan struct{})
	}
	return h.uid, h.returned
}

// disown records that the call in progress needs no ownership.
func (h *handler) disown() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disownLocked()
}

// disownLocked ends the waits for the call in progress. The caller holds mu.
func (h *handler) disownLocked() {
	h.uid = ""
	if h.returned != nil {
		close(h.returned)
		h.returned = nil
	}
}

// uidOf returns the UID of an object, or "".
func uidOf(obj any) types.UID {
	if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = unknown.Obj
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetUID()
}
