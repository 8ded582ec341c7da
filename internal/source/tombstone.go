package source

import (
	"context"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// storeLag is how long the informer's store may be behind what its reflector has been
// given, before a deletion does without an object's last state. It is no more than the
// work of a queue, unless a transform takes its time.
const storeLag = time.Second

// lookUp returns what the informer's store has under a key.
type lookUp func(key string) (any, bool)

// await waits until the store has each of keys as the reflector has been given it, for
// as long as storeLag.
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
	return stored == id || stored.version == "" // which a transform may have taken away
}

// object returns what is in the store under key, or nil.
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

// deletion returns the event that says that the object under key is gone: a copy of its last
// state, whose resourceVersion is not below version, up to which the reflector has everything.
// An object that the store does not have is sent with its name and UID only. A last state that cannot be copied is the
// cached object itself.
func (l lookUp) deletion(key string, id identity, version string, t Type) watch.Event {
	gone := lastState(l.object(key))
	if gone == nil {
		name, _ := cache.ParseObjectName(key)
		made := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
		made.SetNamespace(name.Namespace)
		made.SetName(name.Name)
		made.SetUID(id.uid)
		made.SetResourceVersion(id.version)
		gone = made
	}
	if content, is := gone.(*unstructured.Unstructured); is && content.GetKind() == "" {
		content.SetGroupVersionKind(t.GVR.GroupVersion().WithKind(t.Kind))
	}
	if copied, is := gone.(metav1.Object); is && version != "" {
		if _, cached := gone.(*carrier); !cached {
			copied.SetResourceVersion(version)
		}
	}
	return watch.Event{Type: watch.Deleted, Object: gone}
}

// lastState returns a copy of what is in the store, or nil.
func lastState(last metav1.Object) runtime.Object {
	switch last := last.(type) {
	case nil:
		return nil
	case *unstructured.Unstructured:
		return &unstructured.Unstructured{Object: copyOf(last.Object).(map[string]any)}
	case runtime.Object:
		// A type that embeds another one has its DeepCopyObject, which returns that.
		if copied := last.DeepCopyObject(); reflect.TypeOf(copied) == reflect.TypeOf(last) {
			return copied
		}
	}
	return &carrier{last, last}
}

// copyOf returns a deep copy of value. Apimachinery's panics on what is not of JSON's types,
// such as an int, which a transform may have put there; that is taken as it is.
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

// bookmark returns the event that says that everything up to version has been sent.
func bookmark(version string, t Type) watch.Event {
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	obj.SetGroupVersionKind(t.GVR.GroupVersion().WithKind(t.Kind))
	obj.SetResourceVersion(version)
	return watch.Event{Type: watch.Bookmark, Object: obj}
}
