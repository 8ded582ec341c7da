package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
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
// informer, if the factory has been started, and the release of the last one ends it;
// leases are told from each other, so that nobody can release another's. Its methods are
// safe for concurrent use, also from handlers, where only WaitForSync must not be called.
//
// A lease outlives what becomes of the type: its informer waits while the type is not
// served, and goes on when it is. Cached objects are shared and read-only.
type Lease struct {
	factory *Factory
	entry   *entry
	view    *leaseInformer
	calls   *calls

	mu       sync.Mutex // never held over a call of the informer
	released bool
	handlers map[cache.ResourceEventHandlerRegistration]*leaseHandler
}

// Acquire returns a lease on the informer for gvr. With discovery, gvr is validated first:
// that it is served, in a version that the lease's policy allows, and can be listed and
// watched. Ctx bounds that alone: Acquire does not wait for the list, and the end of ctx
// later, or while others acquire the same, has no effect. It costs no request if somebody
// has the informer, or while the resolver runs and knows the type.
//
// Errors are [*discovery.RefError], those of [discovery.Resolver.Validate], a
// [*ConflictError] if others have the informer with other options, and [ErrShutDown]. With
// [AllowAbsent] a type that is not served, or of which that can't be told, is no error.
// Before the factory has been started the informer waits for that.
func (f *Factory) Acquire(ctx context.Context, gvr schema.GroupVersionResource, opts ...ResourceOption) (*Lease, error) {
	if err := discovery.CheckGVR(gvr); err != nil {
		return nil, fmt.Errorf("dynamicinformer: acquire: %w", err)
	}
	o := f.resourceOptions(gvr, opts)
	k := key{gvr: gvr, versions: o.versions}
	if o.separate {
		k.separate = f.singles.Add(1)
	}
	if !f.serves(k) {
		if err := f.validate(ctx, gvr, &o); err != nil {
			return nil, fmt.Errorf("dynamicinformer: acquire: %w", err)
		}
	}
	l := &Lease{factory: f, calls: newCalls()}
	if err := f.join(l, k, &o); err != nil {
		return nil, err
	}
	l.view = &leaseInformer{SharedIndexInformer: l.entry.informer.informer, lease: l}
	if err := l.index(o.settings.indexers); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// serves reports whether there is an entry under k whose type is served.
func (f *Factory) serves(k key) bool {
	f.mu.Lock()
	e := f.entries[k]
	f.mu.Unlock()
	return e != nil && e.life.serving()
}

// validate asks discovery whether there can be an informer on gvr.
func (f *Factory) validate(ctx context.Context, gvr schema.GroupVersionResource, o *resourceOptions) error {
	if f.options.resolver == nil {
		return nil
	}
	_, err := o.versions.resolve(ctx, f.options.resolver, gvr)
	if o.absent && ctx.Err() == nil && (errors.Is(err, discovery.ErrNotServed) || errors.Is(err, discovery.ErrInconclusive)) {
		return nil
	}
	return err
}

// join makes l a lease on the entry under k, a fresh one if there is none.
func (f *Factory) join(l *Lease, k key, o *resourceOptions) error {
	if joined, err := f.tryJoin(l, k, o, nil); joined || err != nil {
		return err
	}
	_, err := f.tryJoin(l, k, o, f.newEntry(k, o.settings, nil)) // asks the client: not under f.mu
	return err
}

// tryJoin makes l a lease on the entry that is there, or else on made, if that is not nil,
// and reports whether it has.
func (f *Factory) tryJoin(l *Lease, k key, o *resourceOptions, made *entry) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if closed(f.closing) {
		return false, ErrShutDown
	}
	e := f.entries[k]
	if e == nil || e.ending() {
		if made == nil {
			return false, nil
		}
		e = made
		f.entries[k] = e
	} else if err := conflict(k.gvr, &e.settings, &o.settings); err != nil {
		return false, err
	}
	e.leases[l] = struct{}{}
	e.linger = max(e.linger, o.linger)
	e.stopLingerLocked()
	l.entry = e
	if f.life != nil {
		f.startLocked(f.life, e)
	}
	return true, nil
}

// index adds indexers to the informer that it does not have.
func (l *Lease) index(indexers cache.Indexers) error {
	missing := l.factory.claim(l.entry, indexers)
	if len(missing) == 0 {
		return nil
	}
	if err := l.entry.informer.informer.AddIndexers(missing); err != nil {
		return fmt.Errorf("dynamicinformer: %s: indexers: %w", discovery.RefOf(l.entry.gvr), err)
	}
	return nil
}

// claim returns those of indexers that e does not have, which are the caller's to add.
func (f *Factory) claim(e *entry, indexers cache.Indexers) cache.Indexers {
	f.mu.Lock()
	defer f.mu.Unlock()
	var missing cache.Indexers
	for name, index := range indexers {
		if _, there := e.settings.indexers[name]; there {
			continue
		}
		if missing == nil {
			missing = cache.Indexers{}
		}
		missing[name] = index
	}
	if missing != nil {
		all := cache.Indexers{}
		for name, index := range e.settings.indexers {
			all[name] = index
		}
		for name, index := range missing {
			all[name] = index
		}
		e.settings.indexers = all
	}
	return missing
}

// Release gives the lease back. Its handlers are not called any more once Release has
// returned, but for calls that have begun, which Done waits for. The last release of an
// informer cancels its requests and forgets it at once, or after the longest linger; its
// cache can still be read. Release never blocks, and may be called again, which has no
// effect, and from the lease's own handlers.
func (l *Lease) Release() {
	l.mu.Lock()
	if l.released {
		l.mu.Unlock()
		return
	}
	l.released = true
	handlers := l.handlers
	l.handlers = nil
	l.mu.Unlock()
	l.calls.close()
	remove := func() {
		for registration := range handlers {
			_ = l.entry.informer.informer.RemoveEventHandler(registration)
		}
	}
	switch l.factory.part(l, len(handlers) > 0) {
	case errandNow:
		remove()
	case errandLater: // it may have to wait for the informer's locks
		go func() {
			defer l.entry.errands.Done()
			remove()
		}()
	}
}

// errand is whether a lease's handlers are to be removed from an informer that goes on.
type errand int

const (
	noErrand errand = iota
	errandNow
	errandLater // and counted
)

// part takes l from its entry, which ends if that was the last, and says what is left to
// do if l has handlers.
func (f *Factory) part(l *Lease, handlers bool) errand {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := l.entry
	delete(e.leases, l)
	e.changed.Ring()
	goesOn := len(e.leases) > 0 || e.pinned
	switch {
	case !goesOn && e.linger > 0 && !e.ending() && !closed(f.closing):
		e.lingering = time.AfterFunc(e.linger, func() { f.expire(e) })
	case !goesOn:
		f.forgetLocked(e)
		return noErrand
	}
	switch {
	case !handlers || e.drained:
		return noErrand
	case !e.started(): // its locks are held by nobody for long
		return errandNow
	}
	e.errands.Add(1)
	return errandLater
}

// expire forgets e, whose linger is over, if nobody has come.
func (f *Factory) expire(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.lingering != nil && len(e.leases) == 0 && !e.pinned {
		f.forgetLocked(e)
	}
}

// stopLingerLocked keeps an entry that somebody has again. The caller holds the factory's mu.
func (e *entry) stopLingerLocked() {
	if e.lingering != nil {
		e.lingering.Stop()
		e.lingering = nil
	}
}

// forgetLocked ends e. The caller holds f.mu.
func (f *Factory) forgetLocked(e *entry) {
	e.forgotten = true
	e.stopLingerLocked()
	if f.entries[e.key] == e {
		delete(f.entries, e.key)
	}
	switch {
	case e.started():
		e.cancel()
	case !closed(e.done):
		close(e.done)
	}
}

// Done returns a channel that closes when no handler of the lease is called any more: the
// lease has been released, or the factory has ended, and the calls that had begun have
// returned.
func (l *Lease) Done() <-chan struct{} { return l.calls.done }

// Informer returns the lease's view of the shared informer. Handlers that are added
// through it are the lease's. It can't be run, nor be given a transform or a watch error
// handler, for which there are options.
func (l *Lease) Informer() cache.SharedIndexInformer { return l.view }

// Lister returns a lister on the informer's cache. Its objects are shared and read-only.
func (l *Lease) Lister() cache.GenericLister { return l.entry.informer.Lister() }

// HasSyncedChecker returns the informer's: it has listed once, whatever came after.
func (l *Lease) HasSyncedChecker() cache.DoneChecker {
	return l.entry.informer.informer.HasSyncedChecker()
}

// Resource returns the resource as discovery has resolved it last, in the version that is
// watched. Without discovery, or before the type has been served, only its GVR is set.
func (l *Lease) Resource() discovery.Resource { return l.entry.life.current() }

// WaitForSync waits as [Factory.WaitForSync] does, for this informer.
func (l *Lease) WaitForSync(ctx context.Context) error {
	if l.isReleased() {
		return ErrReleased
	}
	return l.factory.waitFor(ctx, []*entry{l.entry})
}

// Retry makes the informer try again now what has failed, and ask discovery again, unless
// the server has asked for the wait. It does not block.
func (l *Lease) Retry() {
	l.entry.life.look()
	l.entry.informer.source.Retry()
}

func (l *Lease) isReleased() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.released
}
