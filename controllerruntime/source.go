package controllerruntime

import (
	"context"
	"errors"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// Source returns a source of the events of a lease, for a controller's Watch. The objects of the lease must be of type object: for a lease of
// [dynamicinformer.Factory.Acquire], *unstructured.Unstructured or client.Object. Handlers and predicates get the same events as from
// source.TypedKind: objects of the first list have a low priority in a priority queue.
//
// The controller starts when it has the objects of the first list. It does not wait for a type that is not served, whose objects come later; see
// [dynamicinformer.WithAllowAbsent]. When the controller ends, its handler is removed. The lease belongs to the caller, who releases it. A source
// can be started once.
func Source[object client.Object, request comparable](lease *dynamicinformer.Lease, handler handler.TypedEventHandler[object, request], predicates ...predicate.TypedPredicate[object]) source.TypedSyncingSource[request] {
	return &leaseSource[object, request]{lease: lease, handler: handler, predicates: predicates}
}

type leaseSource[object client.Object, request comparable] struct {
	lease      *dynamicinformer.Lease
	handler    handler.TypedEventHandler[object, request]
	predicates []predicate.TypedPredicate[object]
	registrar  registrar
}

// registrar is an informer that keeps the registration of the handler that is added to it.
type registrar struct {
	cache.Informer
	registration toolscache.ResourceEventHandlerRegistration
}

// AddEventHandlerWithOptions implements cache.Informer.
func (r *registrar) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, opts toolscache.HandlerOptions) (registration toolscache.ResourceEventHandlerRegistration, err error) {
	registration, err = r.Informer.AddEventHandlerWithOptions(handler, opts)
	r.registration = registration
	return registration, err
}

var errSource = errors.New("a source needs a lease and a handler, and can be started once")

// Start implements source.TypedSource. It does not wait for the list.
func (s *leaseSource[object, request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	if s.lease == nil || s.handler == nil || s.registrar.Informer != nil {
		return errSource
	}
	s.registrar.Informer = s.lease.Informer()
	of := &source.TypedInformer[object, request]{Informer: &s.registrar, Handler: s.handler, Predicates: s.predicates}
	if err := of.Start(ctx, queue); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = s.lease.RemoveEventHandler(s.registrar.registration) }) // a registration of the lease is no error
	return nil
}

// WaitForSync implements source.TypedSyncingSource. If ctx is canceled, it returns nil, as source.Kind does.
func (s *leaseSource[object, request]) WaitForSync(ctx context.Context) error {
	if s.registrar.registration == nil {
		return errSource
	}
	for now := range s.lease.Watch(ctx) {
		if isAbsent(now) {
			return nil
		}
		if now.Listed {
			break
		}
	}
	synced, released := s.registrar.registration.HasSyncedChecker(), false
	select {
	case <-synced.Done():
	case <-s.lease.Done():
		released = true
	case <-ctx.Done():
	}
	switch {
	case toolscache.IsDone(synced), !released && errors.Is(ctx.Err(), context.Canceled):
		return nil
	case released:
		return fmt.Errorf("%s: %w", s, dynamicinformer.ErrReleased)
	}
	return fmt.Errorf("timed out waiting for %s: %w", s, errors.Join(ctx.Err(), s.lease.WaitForSync(ctx)))
}

// String returns the name of the source for logs.
func (s *leaseSource[object, request]) String() string {
	return "lease source: " + discovery.RefOf(s.lease.Resource().GVR).String()
}
