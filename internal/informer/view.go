package informer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// View is a shared informer for one of its users. It rejects calls that would change the informer for other users.
type View struct {
	cache.SharedIndexInformer
	Resource fmt.Stringer // the name of the resource, in the log

	// Add and Remove add and remove handlers of the user.
	Add    func(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error)
	Remove func(registration cache.ResourceEventHandlerRegistration) error
}

var (
	errTransformByOption    = errors.New("dynamicinformer: the informer is shared: call Acquire with the option WithTransform")
	errErrorHandlerByOption = errors.New("dynamicinformer: the informer is shared: call Acquire with the option WithWatchErrorHandler")
)

// AddEventHandler implements cache.SharedInformer.
func (v *View) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return v.Add(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (v *View) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return v.Add(handler, cache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (v *View) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, opts cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return v.Add(handler, opts)
}

// RemoveEventHandler implements cache.SharedInformer.
func (v *View) RemoveEventHandler(registration cache.ResourceEventHandlerRegistration) error {
	return v.Remove(registration)
}

// Run implements cache.SharedInformer. It returns at once.
func (v *View) Run(<-chan struct{}) { v.refuseToRun(klog.Background()) }

// RunWithContext implements cache.SharedInformer. It returns at once.
func (v *View) RunWithContext(ctx context.Context) { v.refuseToRun(klog.FromContext(ctx)) }

func (v *View) refuseToRun(logger klog.Logger) {
	logger.Info("Warning: the factory runs the informer of a lease, this call has no effect", "resource", v.Resource)
}

// SetTransform implements cache.SharedInformer. It returns an error.
func (v *View) SetTransform(cache.TransformFunc) error { return errTransformByOption }

// SetWatchErrorHandler implements cache.SharedInformer. It returns an error.
func (v *View) SetWatchErrorHandler(cache.WatchErrorHandler) error { return errErrorHandlerByOption }

// SetWatchErrorHandlerWithContext implements cache.SharedInformer. It returns an error.
func (v *View) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return errErrorHandlerByOption
}
