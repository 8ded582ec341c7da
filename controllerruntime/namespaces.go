package controllerruntime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// namespacesInformer is the informer of a kind that is watched in each namespace.
type namespacesInformer struct {
	cache   *Cache
	parts   map[string]*informer // by namespace
	checker *checker
}

// newNamespacesInformer returns the informer of parts, by namespace.
func newNamespacesInformer(c *Cache, parts map[string]*informer) *namespacesInformer {
	n := &namespacesInformer{cache: c, parts: parts}
	n.checker = n.all(func(namespace string) toolscache.DoneChecker { return parts[namespace].view.HasSyncedChecker() })
	return n
}

var _ cache.Informer = (*namespacesInformer)(nil)

// AddEventHandler implements cache.Informer.
func (n *namespacesInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return n.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (n *namespacesInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return n.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.Informer. The handler gets the events of different namespaces concurrently, as in
// controller-runtime.
func (n *namespacesInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, opts toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	r := &namespacesRegistration{parts: make(map[string]toolscache.ResourceEventHandlerRegistration, len(n.parts))}
	for namespace, part := range n.parts {
		registration, err := part.view.AddEventHandlerWithOptions(handler, opts)
		if err != nil {
			_ = n.RemoveEventHandler(r) // the error of the addition is the caller's
			return nil, err
		}
		r.parts[namespace] = registration
	}
	r.checker = n.all(func(namespace string) toolscache.DoneChecker { return r.parts[namespace].HasSyncedChecker() })
	return r, nil
}

// RemoveEventHandler implements cache.Informer.
func (n *namespacesInformer) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	r, is := registration.(*namespacesRegistration)
	if !is {
		return fmt.Errorf("registration is a %T, and was not returned by an informer of several namespaces", registration)
	}
	for namespace, part := range n.parts {
		if own, added := r.parts[namespace]; added {
			if err := part.view.RemoveEventHandler(own); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddIndexers implements cache.Informer.
func (n *namespacesInformer) AddIndexers(indexers toolscache.Indexers) error {
	for _, part := range n.parts {
		if err := part.view.AddIndexers(indexers); err != nil {
			return err
		}
	}
	return nil
}

// HasSynced implements cache.Informer.
func (n *namespacesInformer) HasSynced() bool {
	for _, part := range n.parts {
		if !part.view.HasSynced() {
			return false
		}
	}
	return true
}

// HasSyncedChecker implements cache.Informer.
func (n *namespacesInformer) HasSyncedChecker() toolscache.DoneChecker { return n.checker }

// IsStopped implements cache.Informer.
func (n *namespacesInformer) IsStopped() bool {
	for _, part := range n.parts {
		if !part.view.IsStopped() {
			return false
		}
	}
	return true
}

// all returns a checker that is done when the checkers of all namespaces are.
func (n *namespacesInformer) all(of func(namespace string) toolscache.DoneChecker) *checker {
	namespaces := slices.Sorted(maps.Keys(n.parts))
	names := make([]string, len(namespaces))
	for k, namespace := range namespaces {
		names[k] = fmt.Sprintf("%s: %s", namespace, of(namespace).Name())
	}
	return n.cache.newChecker(strings.Join(names, ", "), func(ctx context.Context) bool {
		for _, namespace := range namespaces {
			if !n.parts[namespace].awaitDone(ctx, of(namespace)) {
				return false
			}
		}
		return true
	})
}

// namespacesRegistration is the registration of a handler with the informer of each namespace.
type namespacesRegistration struct {
	parts   map[string]toolscache.ResourceEventHandlerRegistration
	checker *checker
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (r *namespacesRegistration) HasSynced() bool {
	for _, part := range r.parts {
		if !part.HasSynced() {
			return false
		}
	}
	return true
}

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration.
func (r *namespacesRegistration) HasSyncedChecker() toolscache.DoneChecker { return r.checker }
