package controllerruntime

import (
	"context"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/packed"
)

// view is an informer for the program, which ends with RemoveInformer. If the informer's cache is packed, it decodes the objects of handlers
// and index functions. If the kind may be absent, it counts as synced while it is.
type view struct {
	toolscache.SharedIndexInformer
	informer *informer
	synced   toolscache.DoneChecker
}

var _ cache.Informer = (*view)(nil)

func newView(i *informer) *view {
	v := &view{SharedIndexInformer: i.lease.Informer(), informer: i}
	v.synced = v.SharedIndexInformer.HasSyncedChecker()
	if i.cache.options.allowAbsent {
		v.synced = i.cache.newChecker(v.synced.Name(), i.awaitListedOrAbsent)
	}
	return v
}

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
		registration, err = i.lease.AddPackedHandler(&decoder{informer: i, next: handler}, opts)
	} else {
		registration, err = v.SharedIndexInformer.AddEventHandlerWithOptions(handler, opts)
	}
	if err != nil || !i.cache.options.allowAbsent {
		return registration, err
	}
	checks := i.cache.newChecker(registration.HasSyncedChecker().Name(), func(ctx context.Context) bool {
		now, is := i.awaitStatus(ctx) // a later status may be that of a kind that is absent again before it is listed
		return is && (isAbsent(now) || i.awaitDone(ctx, registration.HasSyncedChecker()))
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
	switch {
	case v.informer.removed.Load():
		return dynamicinformer.ErrReleased
	case !v.informer.store.packed:
		return v.SharedIndexInformer.AddIndexers(indexers)
	}
	return v.informer.addIndexers(indexers)
}

// IsStopped implements cache.Informer. An informer that was removed has stopped, also if another form or a lease keeps it.
func (v *view) IsStopped() bool {
	return v.informer.removed.Load() || v.SharedIndexInformer.IsStopped()
}

// HasSynced implements cache.Informer.
func (v *view) HasSynced() bool { return v.informer.hasSynced() }

// HasSyncedChecker implements cache.Informer.
func (v *view) HasSyncedChecker() toolscache.DoneChecker { return v.synced }

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

// decoder is a handler of packed objects that decodes them for next. While an object does not fit its Go type, next has the last version that
// did: it gets no event, and then an update from that version, or its deletion.
type decoder struct {
	informer *informer
	next     toolscache.ResourceEventHandler

	mu   sync.Mutex
	last map[string]any // by key; the last versions that next has, of objects that do not fit now
}

var (
	_ toolscache.TypedResourceEventHandler[*packed.Object] = (*decoder)(nil)
	_ interface{ OnMoved(obj any) }                        = (*decoder)(nil) // of dynamicinformer.MovedHandler
)

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

// keep keeps the last version under key that next has.
func (d *decoder) keep(key string, last any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = map[string]any{}
	}
	d.last[key] = last
}

// take returns what keep has kept under key, or nil, and forgets it.
func (d *decoder) take(key string) any {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := d.last[key]
	delete(d.last, key)
	return last
}

// OnAdd implements toolscache.TypedResourceEventHandler.
func (d *decoder) OnAdd(object *packed.Object, isInInitialList bool) {
	if decoded := d.decode(object); decoded != nil {
		d.next.OnAdd(decoded, isInInitialList)
	}
}

// OnUpdate implements toolscache.TypedResourceEventHandler.
func (d *decoder) OnUpdate(before, after *packed.Object) {
	was := d.decode(before)
	is := was
	if before != after {
		is = d.decode(after)
	}
	key := keyOf(after)
	if was == nil && is != nil {
		was = d.take(key)
	}
	switch {
	case was != nil && is != nil:
		d.next.OnUpdate(was, is)
	case is != nil: // next does not know it
		d.next.OnAdd(is, false)
	case was != nil:
		d.keep(key, was)
	}
}

// OnDelete implements toolscache.TypedResourceEventHandler.
func (d *decoder) OnDelete(deleted toolscache.DeletedObject[*packed.Object]) {
	if obj := d.deleted(deleted); obj != nil {
		d.next.OnDelete(obj)
	}
}

// OnMoved implements dynamicinformer.MovedHandler.
func (d *decoder) OnMoved(obj any) {
	moved, is := obj.(toolscache.DeletedObject[*packed.Object])
	if !is {
		return
	}
	obj = d.deleted(moved)
	if next, is := d.next.(dynamicinformer.MovedHandler); is && obj != nil {
		next.OnMoved(obj)
	}
}

// deleted returns the argument of OnDelete for next; nil if next does not know the object.
func (d *decoder) deleted(deleted toolscache.DeletedObject[*packed.Object]) any {
	decoded, unknown := d.decode(deleted.OptionalObj), deleted.FinalStateUnknown
	key := ""
	switch {
	case unknown != nil:
		key = unknown.Key
	case deleted.OptionalObj != nil:
		key = keyOf(deleted.OptionalObj)
	}
	if last := d.take(key); decoded == nil {
		decoded = last
	}
	switch {
	case decoded == nil && deleted.OptionalObj != nil: // it has never fitted
		return nil
	case unknown != nil:
		return toolscache.DeletedFinalStateUnknown{Key: key, Obj: decoded}
	}
	return decoded
}

func keyOf(object *packed.Object) string { return toolscache.MetaObjectToName(object).String() }
