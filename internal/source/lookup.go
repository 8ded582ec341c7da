package source

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// storeLag is the maximum wait for the informer's store to have the objects of its reflector.
// After it, a deletion has no last state of the object. The delay is that of a queue, unless a
// transform is slow.
const storeLag = time.Second

// lookUp returns the object in the informer's store under a key.
type lookUp func(key string) (any, bool)

// await waits until the store has each of keys in the state of the reflector, at most for
// storeLag.
func (l lookUp) await(ctx context.Context, known *known, keys []string) {
	if l == nil {
		return
	}
	deadline := time.Now().Add(storeLag)
	for pause := time.Millisecond; time.Now().Before(deadline); pause = min(2*pause, 50*time.Millisecond) {
		for len(keys) > 0 && l.has(keys[0], known) {
			keys = keys[1:]
		}
		if len(keys) == 0 {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (l lookUp) has(key string, known *known) bool {
	id, there := known.get(key)
	if !there {
		return true
	}
	obj := l.object(key)
	if obj == nil {
		return false
	}
	stored := identityOf(obj)
	return stored.equals(id) || stored.version == "" || id.version == "" // a transform may have removed the version, or it is not known any more
}

// repeatedLocked records an event of the object under key. The caller holds mu, and has not set the version of the event yet.
func (k *known) repeatedLocked(key string) {
	if k.gainedAt == "" || !before(k.version, k.gainedAt) {
		return
	}
	if k.repeated == nil {
		k.repeated = map[string]struct{}{}
	}
	k.repeated[key] = struct{}{}
}

// StoresRepeated reports whether the reflector's store, which is at version, has the events that a watch has repeated since a list of gained
// slots: that the store was at a later version before says nothing about them. It waits for the store's lock, which an index function may delay.
func (s *Source) StoresRepeated(version string) bool {
	k, store := &s.gate.known, s.gate.lookUp()
	k.mu.Lock()
	if before(k.gainedAt, version) {
		k.repeated = nil
	}
	keys := slices.Collect(maps.Keys(k.repeated))
	k.mu.Unlock()
	return !slices.ContainsFunc(keys, func(key string) bool { return !store.follows(k, key) })
}

// forgetRepeated forgets the repeated events that the store has: there may be no call of StoresRepeated. The goroutine that gives objects to the
// reflector calls it.
func (k *known) forgetRepeated(store lookUp) {
	k.mu.Lock()
	keys := slices.Collect(maps.Keys(k.repeated))
	k.mu.Unlock()
	for _, key := range keys {
		if store.follows(k, key) {
			k.mu.Lock()
			delete(k.repeated, key)
			k.mu.Unlock()
		}
	}
}

// follows reports whether the store has the state of the reflector under key, or a later one.
func (l lookUp) follows(known *known, key string) bool {
	stored := l.object(key)
	id, there := known.get(key)
	return there == (stored != nil) && (!there || !before(stored.GetResourceVersion(), id.version))
}

// object returns the object in the store under key, or nil.
func (l lookUp) object(key string) metav1.Object {
	if l == nil {
		return nil
	}
	item, there := l(key)
	if !there {
		return nil
	}
	obj, err := meta.Accessor(item)
	if err != nil {
		return nil
	}
	return obj
}

// deletion returns the event for the deletion of the object under key. It has a copy of the last state with a resourceVersion that is not
// below version, up to which the reflector has everything, and not below that of the state: a list of gained slots may have objects of later
// versions. If the store does not have the object, the event has only its name and UID. If the last state can't be copied, the event has the
// cached object.
func (l lookUp) deletion(client Client, packing Packing, key string, id identity, version string, t Type) watch.Event {
	last := l.object(key)
	if packing != nil && last != nil {
		last = packing.Unpack(last)
	}
	gone := lastState(last)
	if gone == nil {
		name, _ := cache.ParseObjectName(key)
		made := client.New(t.kind())
		made.SetNamespace(name.Namespace)
		made.SetName(name.Name)
		made.SetUID(id.uid)
		made.SetResourceVersion(id.version)
		gone = made
	}
	if content, is := gone.(*unstructured.Unstructured); is && content.GetKind() == "" {
		content.SetGroupVersionKind(t.kind())
	}
	if copied, is := gone.(metav1.Object); is && version != "" {
		if _, cached := gone.(*carrier); !cached && !before(version, copied.GetResourceVersion()) {
			copied.SetResourceVersion(version)
		}
	}
	if packing != nil {
		gone = packing.Pack(gone)
	}
	return watch.Event{Type: watch.Deleted, Object: gone}
}

// lastState returns a copy of the object in the store, or nil.
func lastState(last metav1.Object) runtime.Object {
	switch last := last.(type) {
	case nil:
		return nil
	case *unstructured.Unstructured:
		return &unstructured.Unstructured{Object: copyOf(last.Object).(map[string]any)}
	case runtime.Object:
		// A type that embeds another type has its DeepCopyObject, which returns the embedded type.
		if copied := last.DeepCopyObject(); reflect.TypeOf(copied) == reflect.TypeOf(last) {
			return copied
		}
	}
	return &carrier{last, last}
}

// copyOf returns a deep copy of value. apimachinery's copy panics on a value that is not of a JSON
// type, such as an int from a transform; copyOf does not copy such a value.
func copyOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		object := make(map[string]any, len(value))
		for key, member := range value {
			object[key] = copyOf(member)
		}
		return object
	case []any:
		if value == nil {
			return value
		}
		array := make([]any, len(value))
		for i, element := range value {
			array[i] = copyOf(element)
		}
		return array
	}
	return value
}

// bookmark returns the bookmark event for version.
func bookmark(client Client, version string, t Type) watch.Event {
	obj := client.New(t.kind())
	obj.SetResourceVersion(version)
	return watch.Event{Type: watch.Bookmark, Object: obj}
}
