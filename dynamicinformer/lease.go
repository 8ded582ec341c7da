package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/handlers"
	"github.com/gvrkit/gvrkit/internal/informer"
	"github.com/gvrkit/gvrkit/internal/namespaces"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/packed"
	"github.com/gvrkit/gvrkit/status"
)

var (
	// ErrShutDown is returned by a factory that has been shut down.
	ErrShutDown = errors.New("dynamicinformer: the factory has been shut down")
	// ErrReleased is returned by a lease that has been released.
	ErrReleased = errors.New("dynamicinformer: the lease has been released")
	// ErrNilHandler is returned for a nil handler.
	ErrNilHandler = handlers.ErrNil
)

var errNilContext = errors.New("the context is nil")

// checkContext returns an error if ctx is nil.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	return nil
}

// Lease is the right of one user to the informer on a resource. The first lease starts the informer, if the factory has been started. The
// release of the last lease ends it. Each lease must be released separately. The methods are safe for concurrent use. Handlers may call all
// of them except WaitForSync.
//
// A lease outlives its type: the informer waits while the type is not served, and continues when the type is served again. Cached objects
// are shared and read-only.
type Lease struct {
	factory  *Factory
	entry    *entry
	view     *informer.View
	handlers *handlers.Group

	validated *discovery.Resource // the resource that Acquire has validated, or nil

	released atomic.Bool
}

// Done returns a channel that closes when the lease or its informer has ended, by Release or with the factory, and all running calls of the lease's
// handlers have returned. After that, no handler of the lease is called.
func (l *Lease) Done() <-chan struct{} { return l.handlers.Done() }

// Informer returns the lease's view of the shared informer. Handlers that are added through the view belong to the lease. The view refuses
// to run, and rejects a transform or a watch error handler: use the options instead.
func (l *Lease) Informer() cache.SharedIndexInformer { return l.view }

// Lister returns a lister on the informer's cache. Its objects are shared and read-only. With a set of namespaces, a list without one of its
// namespaces also returns a [*status.IncompleteError], and Get returns that error instead of NotFound.
func (l *Lease) Lister() cache.GenericLister { return l.entry.informer.Lister() }

// Unstructured returns a reader of the informer's cache, which also selects objects by fields ([lister.Query]). Its objects are shared and
// read-only, unless the reader makes copies. If cached objects are not unstructured, reads return an error. With a set of namespaces, reads return
// the errors of Lister, unless opts have lister.WithCompleteness(nil).
func (l *Lease) Unstructured(opts ...lister.ReaderOption) *lister.Reader {
	opts = append([]lister.ReaderOption{lister.WithCompleteness(l.entry.informer.Incomplete)}, opts...)
	return lister.NewReader(l.entry.informer.GetIndexer(), l.entry.gvr, opts...)
}

// HasSyncedChecker returns the checker of the informer. It is done after the first list.
func (l *Lease) HasSyncedChecker() cache.DoneChecker {
	return l.entry.informer.HasSyncedChecker()
}

// Resource returns the resource as discovery has resolved it last, in the version that is watched. If Acquire has validated the resource, all fields
// are set from the start. Without discovery, or before the type is served, only its GVR is set. It may be out of date, also in [FollowFuncs].Started.
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

// AtLeast waits until the cache has everything of the server up to resourceVersion, or until ctx ends. After a write with that version, the cache has the
// object in the written state or a later one, unless the lease does not select the object, the object is not in its shard, or the status names it as left out.
// Handlers may get the event later. An object that is not selected has no event: the version comes with the next event or bookmark, which may take a minute. If
// the server's versions have decreased, as after a restore of etcd, AtLeast returns an error when an event, a list or the server shows that. Before that,
// versions below the informer's own count as reached. Errors are [ErrReleased] and [*status.VersionError].
func (l *Lease) AtLeast(ctx context.Context, resourceVersion string) error {
	if l.released.Load() {
		return ErrReleased
	}
	if err := checkContext(ctx); err != nil {
		return &status.VersionError{GVR: l.entry.gvr, Want: resourceVersion, Err: err}
	}
	have, err := l.entry.informer.AwaitVersion(ctx, resourceVersion, l.entry.state.Synced)
	if err == nil {
		return nil
	}
	if reason, _ := l.factory.notSynced(l.entry); reason != nil && !errors.Is(err, status.ErrVersionInvalid) {
		err = fmt.Errorf("%w: %w", err, reason)
	}
	return &status.VersionError{GVR: l.entry.gvr, Want: resourceVersion, Have: have, Err: err}
}

// MovedHandler is a handler that also gets objects that have left the cache but still exist: those of a namespace that [Lease.SetNamespaces] has
// removed or [WithNamespaceSelector] no longer selects, and those that have left the shard of [WithShard]. No handler gets OnDelete for them. The
// argument of OnMoved is that of OnDelete. Wrappers of client-go, also those of typed informers, hide the method: use Lease.AddEventHandler.
type MovedHandler interface {
	cache.ResourceEventHandler
	OnMoved(obj any)
}

// SetNamespaces replaces the names of [WithNamespaces], for all leases on the informer: a later lease must have the new names. A namespace
// that is added is listed, and its objects are added. The objects of a namespace that is removed leave the cache, and handlers get no OnDelete: see
// [MovedHandler]. Other namespaces are not listed again. SetNamespaces does not wait for the lists. Errors are [ErrReleased], and an [*OptionError]
// if a name is not valid or the lease has no such option.
func (l *Lease) SetNamespaces(names ...string) error {
	if l.released.Load() {
		return ErrReleased
	}
	chosen := namespaces.Named(names...)
	if name, err := chosen.Check(); err != nil {
		return fmt.Errorf("dynamicinformer: %s: %w", discovery.RefOf(l.entry.gvr), &OptionError{Option: "SetNamespaces", Value: name, Err: err})
	}
	l.factory.mu.Lock() // concurrent calls are in one order
	defer l.factory.mu.Unlock()
	if !l.entry.informer.Source().SetNamespaces(chosen.Names()...) {
		err := &OptionError{Option: "SetNamespaces", Err: errors.New("the lease has no set of names: acquire it with WithNamespaces")}
		return fmt.Errorf("dynamicinformer: %s: %w", discovery.RefOf(l.entry.gvr), err)
	}
	l.entry.settings.namespaces = chosen.After(l.entry.settings.namespaces)
	l.entry.changed.Broadcast()
	return nil
}

// Retry makes the informer retry failed requests and ask discovery now, unless the server has requested the pause. A request in progress
// continues; if it fails, the next one follows without a pause. Retry does not block.
func (l *Lease) Retry() {
	l.entry.state.Look()
	l.entry.informer.Source().Retry()
}

// AddEventHandler adds a handler to the informer. The handler is called until the lease is released. It first gets an addition for each
// cached object. As with the informer's method, the call may wait while the informer processes a long list. Errors are [ErrNilHandler],
// [ErrReleased], and the informer's error if it has been stopped. If the lease is released during the call, for example by the handler,
// there is no error: the handler has been added and removed. The registration of a removed handler does not report whether it has synced.
func (l *Lease) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return l.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithOptions is AddEventHandler with options, such as a resync period of at least 1 s.
func (l *Lease) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if l.released.Load() {
		return nil, ErrReleased
	}
	registration, err := l.entry.informer.AddHandler(handler, opts, l.handlers)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: %s: %w", discovery.RefOf(l.entry.gvr), err)
	}
	return registration, nil
}

// AddPackedHandler is AddEventHandlerWithOptions for a handler that gets the objects of a packed cache without unpacking. It gets no objects that are not packed,
// because of a transform. When an object that the handler has got is no longer packed, OnDelete gets the last packed state. If the last state of a deleted object
// is not packed, OnDelete gets the state that its JSON has, or only the key. If the cache is not packed, the error is an [*OptionError]: see [WithPackedCache].
func (l *Lease) AddPackedHandler(handler cache.TypedResourceEventHandler[*packed.Object], opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if !l.entry.informer.IsPacked() {
		return nil, fmt.Errorf("dynamicinformer: %s: %w", discovery.RefOf(l.entry.gvr), &OptionError{Option: "AddPackedHandler", Err: errors.New("acquire the lease with WithPackedCache")})
	}
	return l.AddEventHandlerWithOptions(handlers.OfPacked(handler), opts)
}

// RemoveEventHandler removes a handler of this lease. After it has returned, no call of the handler begins. A registration that does not
// belong to this lease has no effect. Handlers may call it, since it never waits for a call of a handler, also while the informer stops.
func (l *Lease) RemoveEventHandler(registration cache.ResourceEventHandlerRegistration) error {
	if !l.handlers.Has(registration) {
		return nil
	}
	return l.entry.informer.RemoveEventHandler(registration)
}

// Release ends the lease. After it has returned, no call of the lease's handlers begins; Done waits for running calls. The last release of
// an informer cancels its requests and removes it from the factory, at once or after the longest linger. Its cache can still be read.
// Release never blocks. A second call has no effect. Handlers may call it.
func (l *Lease) Release() {
	added := l.handlers.Close() // before the look at another call, which may not have done so yet
	if l.released.Swap(true) {
		return
	}
	if done := l.factory.part(l, len(added) > 0); done != nil {
		go func() { // RemoveEventHandler may wait for the informer's locks
			defer done()
			for _, registration := range added {
				_ = l.entry.informer.RemoveEventHandler(registration)
			}
		}()
	}
}

// part removes l from its entry, and the entry of the last user from the factory, at once or after the linger. If the informer continues
// and handlers must be removed from it, part returns a function that the caller calls after that.
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
	if e.phase == waiting { // a user may run the informer without the factory
		pending = &f.removals
	}
	if !handlers || !pending.Begin() {
		return nil
	}
	return pending.End
}

// expire removes e from the factory, if its linger has not been stopped.
func (f *Factory) expire(e *entry, this *linger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.lingering == this {
		f.forgetLocked(e)
	}
}

// forgetLocked retires e, which has no users, and removes it from the entries. The caller holds f.mu.
func (f *Factory) forgetLocked(e *entry) {
	e.stopLinger()
	f.dropLocked(e)
	e.retireLocked()
}

// index adds the indexers that the informer of e does not have yet. All of them exist when it returns.
func (f *Factory) index(e *entry, indexers cache.Indexers) error {
	missing, others, differs := f.claim(e, indexers)
	switch {
	case differs != nil:
		return differs.conflictError(e.gvr)
	case others != nil:
		<-others
		return f.index(e, indexers)
	case len(missing) == 0:
		return nil
	}
	err := e.informer.AddIndexers(missing)
	f.unclaim(e, missing, err == nil)
	if err != nil {
		return fmt.Errorf("dynamicinformer: %s: indexers: %w", discovery.RefOf(e.gvr), err)
	}
	return nil
}

// claim returns the indexers that e does not have. The caller must add them to the informer, and call unclaim. If another caller is adding one
// of indexers, claim returns a channel that closes after that.
func (f *Factory) claim(e *entry, indexers cache.Indexers) (missing cache.Indexers, others <-chan struct{}, differs *difference) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if differs = indexConflict(e.settings.indexers, indexers); differs != nil {
		return nil, nil, differs
	}
	missing = cache.Indexers{}
	for name, index := range indexers {
		if adding := e.adding[name]; adding != nil {
			return nil, adding, nil
		}
		if _, there := e.settings.indexers[name]; !there {
			missing[name] = index
		}
	}
	added := make(chan struct{})
	for name := range missing {
		e.adding[name] = added
	}
	return missing, nil, nil
}

// unclaim ends claim for indexers, which are not empty. If added is true, the informer has them now.
func (f *Factory) unclaim(e *entry, indexers cache.Indexers, added bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if added {
		all := maps.Clone(indexers) // other goroutines read the old map
		maps.Copy(all, e.settings.indexers)
		e.settings.indexers = all
	}
	var adding chan struct{}
	for name := range indexers {
		adding = e.adding[name]
		delete(e.adding, name)
	}
	close(adding)
}
