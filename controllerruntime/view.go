package controllerruntime

import (
	"context"
	"maps"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/packed"
)

// view is an informer for the program. If the informer's cache is packed, it decodes the objects of handlers and index functions. If the
// kind may be absent, it counts as synced while it is.
type view struct {
	toolscache.SharedIndexInformer
	informer *informer
}

var _ cache.Informer = (*view)(nil)

// AddEventHandler implements cache.Informer.
func (v *view) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return v.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (v *view) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return v.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.Informer.
func (v *view) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, opts toolscache.HandlerOptions) (registration toolscache.ResourceEventHandlerRegistration, err error) {
	i := v.informer
	if handler == nil {
		return nil, dynamicinformer.ErrNilHandler
	}
	if i.store.decode != nil {
		registration, err = i.lease.AddPackedHandler(&decoder{i, handler}, opts)
	} else {
		registration, err = v.SharedIndexInformer.AddEventHandlerWithOptions(handler, opts)
	}
	if err != nil || !i.cache.options.allowAbsent {
		return registration, err
	}
	checks := i.cache.newChecker(registration.HasSyncedChecker().Name(), func(ctx context.Context) bool {
		return i.awaitListedOrAbsent(ctx) && (isAbsent(i.lease.Status()) || i.awaitDone(ctx, registration.HasSyncedChecker()))
	})
	return &absentRegistration{registration, i, checks}, nil
}

// RemoveEventHandler implements cache.Informer.
func (v *view) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	if wrapped, is := registration.(*absentRegistration); is {
		registration = wrapped.ResourceEventHandlerRegistration
	}
	return v.SharedIndexInformer.RemoveEventHandler(registration)
}

// AddIndexers implements cache.Informer.
func (v *view) AddIndexers(indexers toolscache.Indexers) error {
	s := &v.informer.store
	if !s.packed {
		return v.SharedIndexInformer.AddIndexers(indexers)
	}
	own := make(toolscache.Indexers, len(indexers))
	for name, function := range maps.All(indexers) {
		own[s.indexes+name] = func(tree any) ([]string, error) {
			object, err := s.ofTree(tree)
			if err != nil {
				return nil, err
			}
			return function(object)
		}
	}
	return v.SharedIndexInformer.AddIndexers(own)
}

// HasSynced implements cache.Informer.
func (v *view) HasSynced() bool { return v.informer.hasSynced() }

// HasSyncedChecker implements cache.Informer.
func (v *view) HasSyncedChecker() toolscache.DoneChecker {
	original := v.SharedIndexInformer.HasSyncedChecker()
	if !v.informer.cache.options.allowAbsent {
		return original
	}
	return v.informer.cache.newChecker(original.Name(), v.informer.awaitListedOrAbsent)
}

// absentRegistration is a registration that counts as synced while the kind is absent.
type absentRegistration struct {
	toolscache.ResourceEventHandlerRegistration
	informer *informer
	checker  *checker
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (r *absentRegistration) HasSynced() bool {
	return r.ResourceEventHandlerRegistration.HasSynced() || isAbsent(r.informer.lease.Status())
}

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration.
func (r *absentRegistration) HasSyncedChecker() toolscache.DoneChecker { return r.checker }

// decoder is a handler of packed objects that decodes them for next.
type decoder struct {
	informer *informer
	next     toolscache.ResourceEventHandler
}

// decode returns object in the form of the informer; nil if it does not fit its Go type.
func (d *decoder) decode(object *packed.Object) any {
	if object == nil {
		return nil
	}
	decoded, err := d.informer.store.object(object, true)
	if err != nil {
		log.Log.WithName("controller-runtime").WithName("cache").Error(err, "An object does not fit its Go type: handlers do not get it",
			"kind", d.informer.gvk, "object", client.ObjectKeyFromObject(object))
		return nil
	}
	return decoded
}

// OnAdd implements toolscache.TypedResourceEventHandler.
func (d *decoder) OnAdd(object *packed.Object, isInInitialList bool) {
	if decoded := d.decode(object); decoded != nil {
		d.next.OnAdd(decoded, isInInitialList)
	}
}

// OnUpdate implements toolscache.TypedResourceEventHandler. A handler does not know an object that did not fit before.
func (d *decoder) OnUpdate(before, after *packed.Object) {
	was := d.decode(before)
	is := was
	if before != after {
		is = d.decode(after)
	}
	switch {
	case was != nil && is != nil:
		d.next.OnUpdate(was, is)
	case is != nil:
		d.next.OnAdd(is, false)
	case was != nil:
		d.next.OnDelete(was)
	}
}

// OnDelete implements toolscache.TypedResourceEventHandler.
func (d *decoder) OnDelete(deleted toolscache.DeletedObject[*packed.Object]) {
	decoded := d.decode(deleted.OptionalObj)
	switch {
	case deleted.FinalStateUnknown != nil:
		d.next.OnDelete(toolscache.DeletedFinalStateUnknown{Key: deleted.FinalStateUnknown.Key, Obj: decoded})
	case decoded != nil:
		d.next.OnDelete(decoded)
	}
}
