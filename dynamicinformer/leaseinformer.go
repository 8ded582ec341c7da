package dynamicinformer

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
)

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
