package handlers

import (
	"reflect"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// OfPacked returns next as a handler of an informer whose cache is packed. It gets the objects of the cache that are packed.
func OfPacked(next cache.TypedResourceEventHandler[*packed.Object]) cache.ResourceEventHandler {
	return packedHandler{next}
}

type packedHandler struct {
	next cache.TypedResourceEventHandler[*packed.Object]
}

// String returns the name of the handler, as nameOf does.
func (h packedHandler) String() string {
	funcs, are := h.next.(cache.TypedResourceEventHandlerFuncs[*packed.Object])
	if !are {
		return nameOfType(reflect.TypeOf(h.next))
	}
	return nameOfFuncs(funcs, funcs.AddFunc, funcs.UpdateFunc, funcs.DeleteFunc)
}

// OnAdd implements cache.ResourceEventHandler.
func (h packedHandler) OnAdd(obj any, isInInitialList bool) {
	if object, is := obj.(*packed.Object); is {
		h.next.OnAdd(object, isInInitialList)
	}
}

// OnUpdate implements cache.ResourceEventHandler. A transform may give an object another form, which the handler does not get.
func (h packedHandler) OnUpdate(oldObj, newObj any) {
	before, was := oldObj.(*packed.Object)
	switch object, is := newObj.(*packed.Object); {
	case is && was:
		h.next.OnUpdate(before, object)
	case is:
		h.next.OnAdd(object, false)
	case was:
		h.next.OnDelete(cache.DeletedObject[*packed.Object]{OptionalObj: before})
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (h packedHandler) OnDelete(obj any) {
	if deleted, is := deletedPacked(obj); is {
		h.next.OnDelete(deleted)
	}
}

// OnMoved implements MovedHandler. The argument is that of OnDelete.
func (h packedHandler) OnMoved(obj any) {
	if deleted, is := deletedPacked(obj); is {
		moved(h.next, deleted)
	}
}

// deletedPacked returns the argument of OnDelete for obj. It reports false if the object is not packed.
func deletedPacked(obj any) (deleted cache.DeletedObject[*packed.Object], is bool) {
	if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
		deleted.FinalStateUnknown, obj = &unknown, unknown.Obj
	}
	deleted.OptionalObj, is = obj.(*packed.Object)
	return deleted, is || obj == nil
}

// unpack replaces the objects of e by those for the handler.
func (h *handler) unpack(e *event) {
	unpack := h.set.Unpack
	if _, packed := h.next.(packedHandler); packed || unpack == nil {
		return
	}
	stored := e.obj
	e.obj = unpack(stored)
	switch {
	case e.kind != updated:
	case e.counts == 0: // a resync has the same object twice
		e.old = e.obj
	default:
		e.old = h.set.UnpackLike(e.old, stored)
	}
}
