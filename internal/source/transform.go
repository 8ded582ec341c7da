package source

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// ErrTransform is matched by the error of an object that the informer's transform fails for.
var ErrTransform = errors.New("the transform failed")

// ErrStarted is returned for a transform that comes when the source has begun to read.
var ErrStarted = errors.New("informer has already started")

// transform is the informer's transform. It runs here and not in client-go's queue, where one
// object that it fails for would fail the whole list, and where nothing tells which one it was.
type transform struct {
	mu       sync.Mutex // makes one of asking whether it may be set and setting it
	sealed   bool       // the source has begun to read
	function atomic.Pointer[cache.TransformFunc]
}

// seal lets the transform not be changed any more.
func (t *transform) seal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = true
}

// SetTransform sets the function that makes of each object what is cached. It is called once
// for an object, in the goroutine that reads from the server. It may write to the object, or
// return another one. Nil: objects are cached as they come. The informer needs [Unwrap] as its own
// transform. Once the source has begun to read, nothing is changed and the error is [ErrStarted].
func (s *Source) SetTransform(f cache.TransformFunc) error {
	t := &s.gate.transform
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return ErrStarted
	}
	if f == nil {
		t.function.Store(nil)
		return nil
	}
	t.function.Store(&f)
	return nil
}

// isSet reports whether there is one.
func (t *transform) isSet() bool { return t.function.Load() != nil }

// apply returns what is to be cached for obj, and its key there.
func (t *transform) apply(obj runtime.Object) (_ runtime.Object, key string, err error) {
	function := t.function.Load()
	if function == nil {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return nil, "", err
		}
		return obj, keyOf(accessor), nil
	}
	transformed, err := call(*function, obj)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrTransform, err)
	}
	accessor, err := meta.Accessor(transformed)
	if err != nil {
		return nil, "", fmt.Errorf("%w: it returned %T, which has no metadata", ErrTransform, transformed)
	}
	key = keyOf(accessor)
	if object, is := transformed.(runtime.Object); is {
		return object, key, nil
	}
	return &carrier{accessor, transformed}, key, nil
}

// call calls function. A panic is an error: it concerns one object.
func call(function cache.TransformFunc, obj any) (transformed any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return function(obj)
}

// carrier takes an object that is no runtime.Object through the reflector.
type carrier struct {
	metav1.Object
	content any
}

var _ runtime.Object = (*carrier)(nil)

// GetObjectKind implements runtime.Object.
func (c *carrier) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Nothing copies what is on its way to the store.
func (c *carrier) DeepCopyObject() runtime.Object { return c }

// Unwrap is the cache.TransformFunc of an informer whose source has a transform: it returns
// what that has made of the object.
func Unwrap(obj any) (any, error) {
	if c, is := obj.(*carrier); is {
		return c.content, nil
	}
	return obj, nil
}

// list returns the list that the reflector gets: the objects that were transformed.
func (l listed) list() runtime.Object {
	list := &internalversion.List{Items: make([]runtime.Object, len(l.keys))}
	list.ResourceVersion = l.version
	for i, key := range l.keys {
		list.Items[i] = l.items[key].object
	}
	return list
}

// maxRejected is how many rejected objects keep their error.
const maxRejected = 1000

// Rejected says which objects are left out, since the transform fails for them.
type Rejected struct {
	// Count is how many there are at present.
	Count int
	// Key is that of the last one that failed, and Err why.
	Key string
	Err error
	// Since is since when there has been at least one; zero if there is none.
	Since time.Time
}

// rejections are the rejected objects.
type rejections struct {
	objects map[string]rejection // by their own keys
	last    Rejected
}

// rejection is one rejected object.
type rejection struct {
	uid types.UID
	err error // nil for those beyond maxRejected
}

func (r *rejections) add(key string, uid types.UID, err error) {
	if r.objects == nil {
		r.objects = map[string]rejection{}
	}
	kept := err
	if len(r.objects) >= maxRejected {
		kept = nil
	}
	r.objects[key] = rejection{uid, kept}
	if r.last.Since.IsZero() {
		r.last.Since = time.Now()
	}
	r.last.Count, r.last.Key, r.last.Err = len(r.objects), key, err
}

// remove reports whether key was one of them.
func (r *rejections) remove(key string) bool {
	if _, known := r.objects[key]; !known {
		return false
	}
	delete(r.objects, key)
	r.last.Count--
	if r.last.Count == 0 {
		*r = rejections{}
		return true
	}
	if r.last.Key == key {
		for other, rejected := range r.objects {
			r.last.Key, r.last.Err = other, rejected.err
			if rejected.err != nil {
				break
			}
		}
	}
	return true
}

// after returns r as what comes after earlier: since there has been at least one.
func (r rejections) after(earlier *rejections) rejections {
	if r.last.Count > 0 && earlier.last.Count > 0 {
		r.last.Since = earlier.last.Since
	}
	return r
}
