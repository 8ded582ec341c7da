package dynamicinformer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// sharedInformer is client-go's informer, of which others want to know what it is given:
// the client whether there is a transform, the source who is told of errors, and the status
// how its handlers do.
type sharedInformer struct {
	cache.SharedIndexInformer
	choice *choice // nil: there is none
	errors *errorHandlers
	meters meters

	mu sync.Mutex // makes one of setting and knowing
}

// AddEventHandler implements cache.SharedInformer.
func (i *sharedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.meters.add(handler, i.SharedIndexInformer.AddEventHandler)
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (i *sharedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.meters.add(handler, func(metered cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
		return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(metered, resyncPeriod)
	})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (i *sharedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.meters.add(handler, func(metered cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
		return i.SharedIndexInformer.AddEventHandlerWithOptions(metered, opts)
	})
}

// RemoveEventHandler implements cache.SharedInformer.
func (i *sharedInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	own, is := handle.(*registration)
	if !is {
		return i.SharedIndexInformer.RemoveEventHandler(handle)
	}
	if err := i.SharedIndexInformer.RemoveEventHandler(own.ResourceEventHandlerRegistration); err != nil {
		return err
	}
	i.meters.remove(own.metered)
	return nil
}

// SetTransform implements cache.SharedInformer. The informer may be about to run:
// what it lists from now on must be its own before the transform is there.
func (i *sharedInformer) SetTransform(transform cache.TransformFunc) error {
	if i.choice == nil {
		return i.SharedIndexInformer.SetTransform(i.meters.counted(transform))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.choice.transformed.Swap(true)
	if err := i.SharedIndexInformer.SetTransform(i.meters.counted(transform)); err != nil {
		i.choice.transformed.Store(before)
		return err
	}
	i.choice.transformed.Store(transform != nil)
	return nil
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
	usual   errorHandler
	own     atomic.Pointer[cache.WatchErrorHandlerWithContext] // the user's
	standIn func() *cache.Reflector
}

func (h *errorHandlers) call(ctx context.Context, err error) {
	if own := h.own.Load(); own != nil {
		(*own)(ctx, h.standIn(), err)
		return
	}
	h.usual(ctx, err)
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
