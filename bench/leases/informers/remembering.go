package informers

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// remembering is a handler that knows which objects it has been told of, so that it can
// be told that they are gone when the informer is.
type remembering struct {
	cache.ResourceEventHandler

	mu    sync.Mutex
	known map[cache.ObjectName]any
}

// OnAdd implements cache.ResourceEventHandler.
func (h *remembering) OnAdd(obj any, isInInitialList bool) {
	h.keep(obj)
	h.ResourceEventHandler.OnAdd(obj, isInInitialList)
}

// OnUpdate implements cache.ResourceEventHandler.
func (h *remembering) OnUpdate(oldObj, newObj any) {
	h.keep(newObj)
	h.ResourceEventHandler.OnUpdate(oldObj, newObj)
}

// OnDelete implements cache.ResourceEventHandler.
func (h *remembering) OnDelete(obj any) {
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		h.mu.Lock()
		delete(h.known, name)
		h.mu.Unlock()
	}
	h.ResourceEventHandler.OnDelete(obj)
}

func (h *remembering) keep(obj any) {
	if name, err := cache.ObjectToName(obj); err == nil {
		h.mu.Lock()
		h.known[name] = obj
		h.mu.Unlock()
	}
}

// forget tells the handler that everything is gone. Nobody else may call it meanwhile.
func (h *remembering) forget() {
	h.mu.Lock()
	left := h.known
	h.known = map[cache.ObjectName]any{}
	h.mu.Unlock()
	for name, obj := range left {
		h.ResourceEventHandler.OnDelete(cache.DeletedFinalStateUnknown{Key: name.String(), Obj: obj})
	}
}
