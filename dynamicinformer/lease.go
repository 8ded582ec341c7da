package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/handlers"
)

var (
	// ErrShutDown is what a factory returns that can't start anything any more.
	ErrShutDown = errors.New("dynamicinformer: the factory has been shut down")
	// ErrReleased is what a lease returns that has been released.
	ErrReleased = errors.New("dynamicinformer: the lease has been released")
	// ErrNilHandler is returned for a handler that is nil.
	ErrNilHandler = errors.New("dynamicinformer: the event handler is nil")
)

// Lease is one user's share in the informer on a resource. The first lease starts the
// informer, if the factory has been started, and the release of the last one ends it.
// Each lease is released for itself. Its methods are safe for concurrent use, also from
// handlers, where only WaitForSync must not be called.
//
// A lease outlives what becomes of the type: its informer waits while the type is not
// served, and goes on when it is. Cached objects are shared and read-only.
type Lease struct {
	factory  *Factory
	entry    *entry
	view     *leaseInformer
	handlers *handlers.Group

	validated *discovery.Resource // what Acquire has found; nil: nothing

	released atomic.Bool
}

// Done returns a channel that closes when no handler of the lease is called any more: the
// lease has been released, or the factory has ended, and the calls that had begun have
// returned.
func (l *Lease) Done() <-chan struct{} { return l.handlers.Done() }

// Informer returns the lease's view of the shared informer. Handlers that are added
// through it are the lease's. It can't be run, nor be given a transform or a watch error
// handler, for which there are options.
func (l *Lease) Informer() cache.SharedIndexInformer { return l.view }

// Lister returns a lister on the informer's cache. Its objects are shared and read-only.
func (l *Lease) Lister() cache.GenericLister { return l.entry.informer.Lister() }

// HasSyncedChecker returns the informer's: it has listed once, whatever came after.
func (l *Lease) HasSyncedChecker() cache.DoneChecker {
	return l.entry.informer.HasSyncedChecker()
}

// Resource returns the resource as discovery has resolved it last, in the version that is
// watched. It is whole from the start if Acquire has validated it. Without discovery, or
// before an absent type has been served, only its GVR is set.
func (l *Lease) Resource() discovery.Resource {
	known := l.entry.state.Snapshot()
	if res := known.Resource(); res.GVK.Kind != "" || l.validated == nil {
		return res
	}
	return *l.validated
}

// WaitForSync waits as [Factory.WaitForSync] does, for this informer.
func (l *Lease) WaitForSync(ctx context.Context, opts ...WaitOption) error {
	if l.released.Load() {
		return ErrReleased
	}
	return l.factory.waitFor(ctx, []*entry{l.entry}, newWaitOptions(opts))
}

// Retry makes the informer try again now what has failed, and ask discovery again, unless
// the server has asked for the wait. A request that is under way goes on. It does not block.
func (l *Lease) Retry() {
	l.entry.state.Look()
	l.entry.informer.source.Retry()
}

// AddEventHandler adds a handler to the informer that is called as long as the lease
// lasts. It gets an add for each cached object first. Like the informer's own, it may
// wait while the informer takes in a long list. Errors are [ErrNilHandler],
// [ErrReleased], and the informer's if it has been stopped. A release while the handler is
// being added, which may be the handler's own, is no error: the handler has been added, and has
// ended. Its registration does not say any more whether it has synced, as for any handler that is
// removed.
func (l *Lease) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return l.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions is AddEventHandler with options, such as a resync period.
func (l *Lease) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if funcs, are := handler.(*cache.ResourceEventHandlerFuncs); handler == nil || are && funcs == nil {
		return nil, ErrNilHandler
	}
	if l.released.Load() {
		return nil, ErrReleased
	}
	registration, err := l.entry.informer.addEventHandler(handler, opts, l.handlers)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: %s: %w", discovery.RefOf(l.entry.gvr), err)
	}
	return registration, nil
}

// RemoveEventHandler ends a handler of this lease: once it has returned no call of the handler
// begins any more. A registration of another lease, or of none, has no effect.
func (l *Lease) RemoveEventHandler(registration cache.ResourceEventHandlerRegistration) error {
	if !l.handlers.Has(registration) {
		return nil
	}
	return l.entry.informer.RemoveEventHandler(registration)
}

// Release gives the lease back. Its handlers are not called any more once Release has
// returned, but for calls that have begun, which Done waits for. The last release of an
// informer cancels its requests and forgets it at once, or after the longest linger; its
// cache can still be read. Release never blocks, and may be called again, which has no
// effect, and from the lease's own handlers.
func (l *Lease) Release() {
	if l.released.Swap(true) {
		return
	}
	added := l.handlers.Close()
	if done := l.factory.part(l, len(added) > 0); done != nil {
		go func() { // it may have to wait for the informer's locks
			defer done()
			for _, registration := range added {
				_ = l.entry.informer.RemoveEventHandler(registration)
			}
		}()
	}
}

// part takes l from its entry, which is forgotten if that was the last user, at once or after the
// linger. If l has handlers that are to be removed from an informer that goes on, it returns what to
// call afterwards.
func (f *Factory) part(l *Lease, handlers bool) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := l.entry
	e.remove(l)
	e.changed.Broadcast()
	if e.none() {
		if e.linger <= 0 || e.ending() || closed(f.closing) {
			f.forgetLocked(e)
			return nil
		}
		e.startLinger(func(this *linger) { f.expire(e, this) })
	}
	pending := &e.pending
	if e.phase == waiting { // a user may run it by hand
		pending = &f.removals
	}
	if !handlers || !pending.Begin() {
		return nil
	}
	return pending.End
}

// expire forgets e, if its linger has not been stopped.
func (f *Factory) expire(e *entry, this *linger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.lingering == this {
		f.forgetLocked(e)
	}
}

// forgetLocked retires e, which has no users, and takes it out of the entries. The caller holds f.mu.
func (f *Factory) forgetLocked(e *entry) {
	e.stopLinger()
	f.dropLocked(e)
	e.retireLocked()
}

var (
	errTransformByOption    = errors.New("dynamicinformer: the informer is shared: give Acquire the option WithTransform")
	errErrorHandlerByOption = errors.New("dynamicinformer: the informer is shared: give Acquire the option WithWatchErrorHandler")
)

// leaseInformer is a lease's view of an informer: handlers are the lease's, and what would
// change the informer for others is refused.
type leaseInformer struct {
	cache.SharedIndexInformer
	lease *Lease
}

func (i *leaseInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.lease.AddEventHandler(handler)
}

func (i *leaseInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.lease.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

func (i *leaseInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.lease.AddEventHandlerWithOptions(handler, opts)
}

func (i *leaseInformer) RemoveEventHandler(registration cache.ResourceEventHandlerRegistration) error {
	return i.lease.RemoveEventHandler(registration)
}

func (i *leaseInformer) Run(<-chan struct{}) { i.refuseToRun(klog.Background()) }

func (i *leaseInformer) RunWithContext(ctx context.Context) { i.refuseToRun(klog.FromContext(ctx)) }

func (i *leaseInformer) refuseToRun(logger klog.Logger) {
	logger.Info("Warning: an informer that is leased is run by its factory", "resource", discovery.RefOf(i.lease.entry.gvr))
}

func (i *leaseInformer) SetTransform(cache.TransformFunc) error { return errTransformByOption }

func (i *leaseInformer) SetWatchErrorHandler(cache.WatchErrorHandler) error {
	return errErrorHandlerByOption
}

func (i *leaseInformer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return errErrorHandlerByOption
}
