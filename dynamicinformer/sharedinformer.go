package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/handlers"
	"github.com/gvrkit/gvrkit/internal/source"
)

// sharedInformer is client-go's informer, of which others want to know what it is given:
// the client whether there is a transform, the source who is told of errors, and the status
// how its handlers do.
type sharedInformer struct {
	cache.SharedIndexInformer
	choice   *choice // nil: there is none
	errors   *errorHandlers
	source   *source.Source
	handlers *handlers.Set
	resync   time.Duration                       // of handlers that ask for no period of their own
	over     func() bool                         // reports whether the informer's factory will not run it any more; nil: there is none
	guard    func(cache.Indexers) cache.Indexers // nil: index functions are called as they are
	// unguarded are the index functions as they are, if there is a guard. Guarded by mu.
	unguarded cache.Indexers

	mu sync.Mutex // makes one of setting and knowing
}

// resyncCheck is how often an informer without a resync period looks whether a handler has one
// that is due. It costs next to nothing. client-go's informers without a period never look,
// and leave such a handler without.
const resyncCheck = 30 * time.Second

// AddEventHandler implements cache.SharedInformer.
func (i *sharedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i *sharedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions implements cache.SharedInformer. A handler's resync period counts
// also if the informer has none: if that is running, with a grain of half a minute.
func (i *sharedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.addEventHandler(handler, opts, nil)
}

// addEventHandler adds a handler of group, which may be nil.
func (i *sharedInformer) addEventHandler(handler cache.ResourceEventHandler, opts cache.HandlerOptions, group *handlers.Group) (cache.ResourceEventHandlerRegistration, error) {
	if i.over != nil && i.over() && !i.IsStopped() && !i.isRunning() {
		return nil, fmt.Errorf("handler %T was not added to the informer: %w", handler, ErrShutDown)
	}
	if opts.ResyncPeriod == nil {
		opts.ResyncPeriod = &i.resync
	}
	return i.handlers.Add(handler, opts, group)
}

// isRunning reports whether the factory or a user runs the informer.
func (i *sharedInformer) isRunning() bool {
	informer, can := i.SharedIndexInformer.(interface{ HasStarted() bool })
	return can && informer.HasStarted()
}

// RemoveEventHandler implements cache.SharedInformer.
func (i *sharedInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	return i.handlers.Remove(handle)
}

// SetTransform implements cache.SharedInformer. The source transforms objects, which leaves
// out those that it fails for. The informer may be about to run: what it lists from now on must
// be its own before the transform is there.
func (i *sharedInformer) SetTransform(transform cache.TransformFunc) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	own := i.choice != nil && i.choice.transformed.Swap(true)
	err := i.SharedIndexInformer.SetTransform(source.Unwrap)
	if err == nil {
		err = i.source.SetTransform(transform)
	}
	if err == nil {
		own = transform != nil
	}
	if i.choice != nil {
		i.choice.transformed.Store(own)
	}
	return err
}

// AddIndexers implements cache.SharedIndexInformer.
func (i *sharedInformer) AddIndexers(indexers cache.Indexers) error {
	if i.guard == nil {
		return i.SharedIndexInformer.AddIndexers(indexers)
	}
	if err := i.SharedIndexInformer.AddIndexers(i.guard(indexers)); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	all := maps.Clone(i.unguarded) // others read the old one
	maps.Copy(all, indexers)
	i.unguarded = all
	return nil
}

// GetIndexer implements cache.SharedIndexInformer.
func (i *sharedInformer) GetIndexer() cache.Indexer {
	indexer := i.SharedIndexInformer.GetIndexer()
	if i.guard == nil {
		return indexer
	}
	return &readIndexer{indexer, i}
}

// SetWatchErrorHandler implements cache.SharedInformer.
func (i *sharedInformer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements cache.SharedInformer. The reflector, which
// would call the handler, gets no errors any more: they are handled where requests are
// tried again.
func (i *sharedInformer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.SharedIndexInformer.SetWatchErrorHandlerWithContext(handler); err != nil {
		return err
	}
	i.errors.own.Store(&handler)
	return nil
}

// errorHandler gets an error after which a list or watch is tried again.
type errorHandler func(ctx context.Context, err error)

// errorHandlers are who is told of errors.
type errorHandlers struct {
	resource string // in the texts
	usual    errorHandler
	own      atomic.Pointer[cache.WatchErrorHandlerWithContext] // the user's
	standIn  func() *cache.Reflector
}

// call tells of err, to a handler of the user's in the words in which client-go's reflector
// would.
func (h *errorHandlers) call(ctx context.Context, err error) {
	list, is := errors.AsType[*source.ListError](err)
	if is {
		err = list.Err
	}
	own := h.own.Load()
	if own == nil {
		h.usual(ctx, err)
		return
	}
	if is {
		err = fmt.Errorf("failed to list %s: %w", h.resource, err)
	}
	(*own)(ctx, h.standIn(), err)
}

// standIn returns what makes, once, a reflector that does not run: handlers such as
// client-go's own ask it for its name.
func standIn(lw cache.ListerWatcher, gvr schema.GroupVersionResource) func() *cache.Reflector {
	return sync.OnceValue(func() *cache.Reflector {
		return cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			Name: "gvrkit", TypeDescription: gvr.String(),
		})
	})
}
