package handlers

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// OfPacked returns next as a handler of one informer whose cache is packed. It gets the objects of the cache that are packed.
func OfPacked(next cache.TypedResourceEventHandler[*packed.Object]) cache.ResourceEventHandler {
	return &packedHandler{next: next}
}

// packedHandler has one call at a time.
type packedHandler struct {
	next   cache.TypedResourceEventHandler[*packed.Object]
	others map[cache.ObjectName]bool // the objects that next does not know: their last versions were not packed
}

// String returns the name of the handler, as nameOf does.
func (h *packedHandler) String() string {
	funcs, are := h.next.(cache.TypedResourceEventHandlerFuncs[*packed.Object])
	if !are {
		return nameOfType(reflect.TypeOf(h.next))
	}
	return nameOfFuncs(funcs, funcs.AddFunc, funcs.UpdateFunc, funcs.DeleteFunc)
}

// OnAdd implements cache.ResourceEventHandler.
func (h *packedHandler) OnAdd(obj any, isInInitialList bool) {
	if object, is := h.version(obj); is {
		h.next.OnAdd(object, isInInitialList)
	}
}

// OnUpdate implements cache.ResourceEventHandler. A transform may give an object another form, which the handler does not get.
func (h *packedHandler) OnUpdate(oldObj, newObj any) {
	before, was := oldObj.(*packed.Object)
	switch object, is := h.version(newObj); {
	case is && was:
		h.next.OnUpdate(before, object)
	case is:
		h.next.OnAdd(object, false)
	case was:
		h.next.OnDelete(cache.DeletedObject[*packed.Object]{OptionalObj: before})
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (h *packedHandler) OnDelete(obj any) {
	if h.forget(obj) {
		h.next.OnDelete(deletedPacked(obj))
	}
}

// OnMoved implements MovedHandler. The argument is that of OnDelete.
func (h *packedHandler) OnMoved(obj any) {
	if h.forget(obj) {
		moved(h.next, deletedPacked(obj))
	}
}

// version returns a version of an object for next. It reports false if it is not packed.
func (h *packedHandler) version(obj any) (object *packed.Object, is bool) {
	object, is = obj.(*packed.Object)
	switch {
	case !is && h.others == nil:
		h.others = map[cache.ObjectName]bool{nameOfObject(obj): true}
	case !is:
		h.others[nameOfObject(obj)] = true
	case len(h.others) > 0:
		delete(h.others, nameOfObject(obj))
	}
	return object, is
}

// forget reports whether next knows a deleted object. The form of a deletion does not tell: it may be another one than that of the version
// before, also because events were merged.
func (h *packedHandler) forget(obj any) (known bool) {
	if len(h.others) == 0 {
		return true
	}
	name := nameOfObject(obj)
	known = !h.others[name]
	delete(h.others, name)
	return known
}

func nameOfObject(obj any) cache.ObjectName {
	name, _ := cache.DeletionHandlingObjectToName(obj) // the source has no objects without a name
	return name
}

// deletedPacked returns the argument of OnDelete for obj.
func deletedPacked(obj any) (deleted cache.DeletedObject[*packed.Object]) {
	unknown, is := obj.(cache.DeletedFinalStateUnknown)
	if is {
		obj = unknown.Obj
	}
	deleted.OptionalObj = packedFrom(obj)
	if is || deleted.OptionalObj == nil {
		last := cache.DeletedFinalStateUnknown{Key: unknown.Key}
		if !is {
			last.Key = keyOf(obj)
		}
		if deleted.OptionalObj != nil {
			last.Obj = deleted.OptionalObj
		}
		deleted.FinalStateUnknown = &last
	}
	return deleted
}

// packedFrom returns obj as a packed object, also if it has values that no decoder returns, but JSON has. Otherwise it returns nil.
func packedFrom(obj any) *packed.Object {
	object, is := obj.(*packed.Object)
	tree, are := obj.(*unstructured.Unstructured)
	if is || !are {
		return object
	}
	decoded := &unstructured.Unstructured{}
	encoded, err := json.Marshal(tree.Object)
	if err != nil || json.Unmarshal(encoded, &decoded.Object) != nil {
		return nil
	}
	object, _ = packed.NewPacker().Pack(decoded)
	return object
}

// unpack replaces the objects of e by those for the handler.
func (h *handler) unpack(e *event) {
	unpack := h.set.Unpack
	if _, packed := h.next.(*packedHandler); packed || unpack == nil {
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
