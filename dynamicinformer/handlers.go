package dynamicinformer

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
)

// AddEventHandler adds a handler to the informer that is called as long as the lease
// lasts. It gets an add for each cached object first. Like the informer's own, it may
// wait while the informer takes in a long list. Errors are [ErrNilHandler],
// [ErrReleased], and the informer's if it has been stopped. A release while it is being
// added, which may be the handler's own, is none: it has been added, and has ended. Whether
// it has synced is then not told any more, as of any handler that is removed.
func (l *Lease) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return l.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions is AddEventHandler with options, such as a resync period.
func (l *Lease) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if funcs, are := handler.(*cache.ResourceEventHandlerFuncs); handler == nil || are && funcs == nil {
		return nil, ErrNilHandler
	}
	if l.isReleased() {
		return nil, ErrReleased
	}
	own := &leaseHandler{of: l.calls, holder: l.name, handler: handler}
	informer := l.entry.informer.informer
	registration, err := informer.AddEventHandlerWithOptions(own, opts)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: %s: %w", discovery.RefOf(l.entry.gvr), err)
	}
	if !l.keep(registration, own) {
		_ = informer.RemoveEventHandler(registration)
	}
	return registration, nil
}

// keep notes a handler, unless the lease has been released.
func (l *Lease) keep(registration cache.ResourceEventHandlerRegistration, handler *leaseHandler) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return false
	}
	if l.handlers == nil {
		l.handlers = map[cache.ResourceEventHandlerRegistration]*leaseHandler{}
	}
	l.handlers[registration] = handler
	return true
}

// RemoveEventHandler ends a handler of this lease's: once it has returned no call of it
// begins any more. That of another's registration, or of none, has no effect.
func (l *Lease) RemoveEventHandler(registration cache.ResourceEventHandlerRegistration) error {
	if !reflect.ValueOf(registration).Comparable() {
		return nil // nobody's, and no key
	}
	l.mu.Lock()
	handler := l.handlers[registration]
	delete(l.handlers, registration)
	l.mu.Unlock()
	if handler == nil && !l.had(registration) {
		return nil
	}
	if handler != nil {
		handler.remove()
	}
	return l.entry.informer.informer.RemoveEventHandler(registration)
}

// had reports whether a registration was this lease's, which may have been released: an
// informer that was never run keeps its handlers until they are removed.
func (l *Lease) had(r cache.ResourceEventHandlerRegistration) bool {
	own, is := r.(*registration)
	if !is || own == nil {
		return false
	}
	handler, is := own.metered.handler.(*leaseHandler)
	return is && handler.of == l.calls
}

// leaseHandler is a handler whose calls are the lease's.
type leaseHandler struct {
	of      *calls
	holder  string // the lease's name
	handler cache.ResourceEventHandler

	mu      sync.Mutex
	removed bool
}

func (h *leaseHandler) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = true
}

func (h *leaseHandler) begin() bool {
	h.mu.Lock()
	removed := h.removed
	h.mu.Unlock()
	return !removed && h.of.begin()
}

// OnAdd implements cache.ResourceEventHandler.
func (h *leaseHandler) OnAdd(obj any, isInInitialList bool) {
	if h.begin() {
		defer h.of.end()
		h.handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (h *leaseHandler) OnUpdate(oldObj, newObj any) {
	if h.begin() {
		defer h.of.end()
		h.handler.OnUpdate(oldObj, newObj)
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (h *leaseHandler) OnDelete(obj any) {
	if h.begin() {
		defer h.of.end()
		h.handler.OnDelete(obj)
	}
}

// calls are those of a lease's handlers.
type calls struct {
	mu     sync.Mutex
	under  int // way
	closed bool
	done   chan struct{} // closed when none is under way, nor will be
}

func newCalls() *calls { return &calls{done: make(chan struct{})} }

func (c *calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.under++
	return true
}

func (c *calls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under--
	if c.closed && c.under == 0 {
		close(c.done)
	}
}

// close lets no call begin any more.
func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if c.under == 0 {
		close(c.done)
	}
}
