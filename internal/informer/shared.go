package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/handlers"
	"github.com/gvrkit/gvrkit/internal/source"
)

// AddEventHandler implements cache.SharedInformer.
func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions implements cache.SharedInformer. A handler's resync period has an effect
// also if the informer has none. It is at least 1 s.
func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddHandler(handler, opts, nil)
}

// AddHandler adds a handler of group, which may be nil.
func (i *Informer) AddHandler(handler cache.ResourceEventHandler, opts cache.HandlerOptions, group *handlers.Group) (cache.ResourceEventHandlerRegistration, error) {
	if err := i.refused(); err != nil {
		return nil, fmt.Errorf("handler %T was not added to the informer: %w", handler, err)
	}
	period := i.resyncPeriod(opts.ResyncPeriod)
	// client-go's informer, if it has a resync, withholds updates without another resourceVersion from
	// handlers whose resync is not due. So it never has one: each handler has its own.
	opts.ResyncPeriod = new(time.Duration)
	return i.handlers.Add(handler, opts, group, period)
}

// resyncPeriod returns the resync period of a handler that requests this one; nil: that of the informer. As in client-go, if the informer
// has a period and runs, the handler has no period shorter than those before the start.
func (i *Informer) resyncPeriod(requested *time.Duration) time.Duration {
	period := i.resync
	if requested != nil {
		period = *requested
	}
	if i.resync <= 0 || period <= 0 {
		return period
	}
	running := i.isRunning() // takes a lock of client-go's informer, which may hold it for long
	i.mu.Lock()
	defer i.mu.Unlock()
	if running {
		return max(period, i.shortest)
	}
	i.shortest = min(period, i.shortest)
	return period
}

// refused returns why no handler can be added, if the informer has not run.
func (i *Informer) refused() error {
	if i.refuse == nil || i.isRunning() {
		return nil
	}
	return i.refuse()
}

// IsStopped implements cache.SharedInformer. An informer that has ended without having run is stopped too.
func (i *Informer) IsStopped() bool { return i.SharedIndexInformer.IsStopped() || i.refused() != nil }

// isRunning reports whether the factory or a user runs the informer, or has run it.
func (i *Informer) isRunning() bool {
	informer, can := i.SharedIndexInformer.(interface{ HasStarted() bool })
	return can && informer.HasStarted()
}

// RemoveEventHandler implements cache.SharedInformer.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	return i.handlers.Remove(handle)
}

// SetTransform implements cache.SharedInformer. The source transforms objects, and leaves out objects
// for which the transform fails. The informer may be about to run: from now on it must get objects
// without shared parts, before the transform is set.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	own := i.transformed.Swap(true)
	err := i.SharedIndexInformer.SetTransform(source.Unwrap)
	if err == nil {
		err = i.source.SetTransform(transform)
	}
	if err == nil {
		own = transform != nil
	}
	i.transformed.Store(own)
	return err
}

// HasSyncedChecker implements cache.SharedInformer. client-go's checker has the type of the example object in its name, which is nil.
func (i *Informer) HasSyncedChecker() cache.DoneChecker {
	return &namedChecker{i.SharedIndexInformer.HasSyncedChecker(), i.handlers.Name}
}

type namedChecker struct {
	cache.DoneChecker
	name string
}

// Name implements cache.DoneChecker.
func (c *namedChecker) Name() string { return c.name }

// AddIndexers implements cache.SharedIndexInformer.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	if err := CheckIndexers(indexers); err != nil {
		return err
	}
	if err := i.SharedIndexInformer.AddIndexers(i.guard(indexers)); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	all := maps.Clone(i.unguarded) // other goroutines read the old map
	maps.Copy(all, indexers)
	i.unguarded = all
	return nil
}

// GetIndexer implements cache.SharedIndexInformer.
func (i *Informer) GetIndexer() cache.Indexer {
	indexer := i.SharedIndexInformer.GetIndexer()
	if i.packing != nil {
		indexer = &packedIndexer{indexer, i.packing}
	}
	if i.unindexed == nil && i.packing == nil {
		return indexer
	}
	return &readIndexer{indexer, i}
}

// GetStore implements cache.SharedInformer.
func (i *Informer) GetStore() cache.Store {
	if i.packing == nil {
		return i.SharedIndexInformer.GetStore()
	}
	return i.GetIndexer()
}

// SetWatchErrorHandler implements cache.SharedInformer.
func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	if handler == nil {
		return i.SetWatchErrorHandlerWithContext(nil)
	}
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements cache.SharedInformer. The source, which retries requests, calls the handler for the errors for
// which client-go's reflector calls it; nil: the usual one.
func (i *Informer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	return i.setErrorHandler(handler, false)
}

// SetErrorHandler is SetWatchErrorHandlerWithContext for a handler of all errors of lists and watches.
func (i *Informer) SetErrorHandler(handler cache.WatchErrorHandlerWithContext) error {
	return i.setErrorHandler(handler, true)
}

func (i *Informer) setErrorHandler(handler cache.WatchErrorHandlerWithContext, all bool) error {
	own := &ownHandler{handler, all}
	if handler == nil {
		own, handler = nil, cache.DefaultWatchErrorHandler
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.SharedIndexInformer.SetWatchErrorHandlerWithContext(untilEnd(handler)); err != nil {
		return err
	}
	i.errors.own.Store(own)
	return nil
}

// untilEnd returns a handler that calls handler, unless the reflector ends. The list in progress is then canceled, and client-go reports
// that or not, by chance.
func untilEnd(handler cache.WatchErrorHandlerWithContext) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *cache.Reflector, err error) {
		if ctx.Err() == nil {
			handler(ctx, r, err)
		}
	}
}

// errorHandler gets an error of a list or watch that will be retried.
type errorHandler func(ctx context.Context, err error)

// ownHandler is a handler of the user.
type ownHandler struct {
	call cache.WatchErrorHandlerWithContext
	all  bool // it gets errors for which client-go calls no handler, too
}

// errorHandlers are the handlers of errors of lists and watches: that of the user, or else the usual
// one.
type errorHandlers struct {
	resource      string // in the texts
	usual         errorHandler
	own           atomic.Pointer[ownHandler]
	streams       func() bool // whether client-go's reflector would request watch-lists
	idleReflector func() *cache.Reflector
}

// call calls the handler. The user's handler gets the same text as from client-go's reflector.
func (h *errorHandlers) call(ctx context.Context, err error) {
	list, ofList := errors.AsType[*source.ListError](err)
	if ofList {
		err = list.Err
	}
	stream, ofStream := errors.AsType[*source.StreamError](err)
	if ofStream {
		err = stream.Err
	}
	own := h.own.Load()
	if own == nil || !own.all && (ofStream || isBrief(err) && (!ofList || h.streams())) {
		h.usual(ctx, err)
		return
	}
	if ofList {
		err = fmt.Errorf("failed to list %s: %w", h.resource, err)
	}
	own.call(ctx, h.idleReflector(), err)
}

// isBrief reports whether client-go's reflector sends a watch or watch-list again after err, and calls no handler. Handlers may stop the
// informer, and a server that restarts or is busy is no reason.
func isBrief(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}

// idleReflector returns a function that creates, once, a reflector that does not run: handlers such as
// client-go's default handler use its name.
func idleReflector(lw cache.ListerWatcher, gvr schema.GroupVersionResource) func() *cache.Reflector {
	return sync.OnceValue(func() *cache.Reflector {
		return cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			Name: "gvrkit", TypeDescription: gvr.String(),
		})
	})
}

// Unindexed gets the failures of index functions.
type Unindexed interface {
	// HasUnindexed reports whether Unindexed was called with an error for an object that is still
	// without that index.
	HasUnindexed() bool
	// Unindexed is called with each failure of the function of index for the object under key, and
	// with a nil error for each success while HasUnindexed is true.
	Unindexed(key string, uid types.UID, index string, err error)
}

// CheckIndexers returns an error if an index function is nil. client-go's store would panic when the first
// object arrives, and end the process.
func CheckIndexers(indexers cache.Indexers) error {
	for name, function := range indexers {
		if function == nil {
			return fmt.Errorf("the function of index %q is nil", name)
		}
	}
	return nil
}

// guard wraps indexers, so that their functions may fail or panic for an object. client-go's store
// would panic and end the process. Instead, the object is left out of that index, and the failure is
// reported. The map is always a new one, because client-go's store writes to it.
func (i *Informer) guard(indexers cache.Indexers) cache.Indexers {
	guarded := make(cache.Indexers, len(indexers))
	for name, function := range indexers {
		guarded[name] = orValues(i.guardIndex(name, function))
	}
	return guarded
}

func (i *Informer) guardIndex(name string, function cache.IndexFunc) cache.IndexFunc {
	if isOfNamespaces(function) {
		return function
	}
	if i.packing != nil {
		function = i.packing.index(function)
	}
	if i.unindexed == nil {
		return function
	}
	return func(obj any) ([]string, error) {
		values, err := callIndex(function, obj)
		if err == nil && !i.unindexed.HasUnindexed() {
			return values, nil
		}
		if err != nil {
			values, err = nil, fmt.Errorf("index %q: %w", name, err)
		}
		if key, unknown := cache.MetaNamespaceKeyFunc(obj); unknown == nil {
			i.unindexed.Unindexed(key, uidOf(obj), name, err)
		}
		return values, nil
	}
}

// isOfNamespaces reports whether function is client-go's, which reads only the namespace of an object, in any form.
func isOfNamespaces(function cache.IndexFunc) bool {
	return reflect.ValueOf(function).Pointer() == reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()
}

// uidOf returns the UID of obj, or "" if it has no metadata.
func uidOf(obj any) types.UID {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return accessor.GetUID()
}

// callIndex calls function. A panic is an error: it concerns one object.
func callIndex(function cache.IndexFunc, obj any) (values []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			values, err = nil, errtext.Panicked(r)
		}
	}()
	return function(obj)
}

// indexValues is the argument of client-go's Index: the values of the original index function for the argument of a user.
type indexValues []string

// orValues returns function, which also accepts indexValues.
func orValues(function cache.IndexFunc) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if values, are := obj.(indexValues); are {
			return values, nil
		}
		return function(obj)
	}
}

// readIndexer is an informer's indexer for its users. The argument of Index is not an object of the
// cache, so Index calls the original index function and does not report its error in the status.
type readIndexer struct {
	cache.Indexer
	informer *Informer
}

// Packed implements objectlister.Packed.
func (r *readIndexer) Packed() (cached cache.Indexer, unpack func(any) any) {
	if packed, is := r.Indexer.(*packedIndexer); is {
		return &readIndexer{packed.Indexer, r.informer}, packed.packing.unpacked
	}
	return r, nil
}

// Index implements cache.Indexer.
func (r *readIndexer) Index(indexName string, obj any) ([]any, error) {
	function, known := r.informer.indexFunc(indexName)
	if !known {
		return r.Indexer.Index(indexName, obj) // returns an error
	}
	if r.informer.packing != nil {
		obj = r.informer.packing.unpacked(obj)
	}
	values, err := callIndex(function, obj)
	if err != nil {
		return nil, err
	}
	return r.Indexer.Index(indexName, indexValues(values)) // one state of the cache, as in client-go
}

// GetIndexers implements cache.Indexer.
func (r *readIndexer) GetIndexers() cache.Indexers {
	r.informer.mu.Lock()
	defer r.informer.mu.Unlock()
	return maps.Clone(r.informer.unguarded)
}

// AddIndexers implements cache.Indexer.
func (r *readIndexer) AddIndexers(indexers cache.Indexers) error {
	return r.informer.AddIndexers(indexers)
}

// indexFunc returns the original index function with that name.
func (i *Informer) indexFunc(name string) (cache.IndexFunc, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	function, known := i.unguarded[name]
	return function, known
}
