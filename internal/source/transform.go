package source

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// ErrTransform is the error of an object for which the informer's transform fails.
var ErrTransform = errors.New("the transform failed")

// ErrDecode is the error of an object that is not of the source's form.
var ErrDecode = errors.New("the object can't be decoded")

// ErrStarted is returned by SetTransform after the source has begun to read.
var ErrStarted = errors.New("informer has already started")

// transform is the conversion by the client, and the informer's transform. It does not run in client-go's queue: there, a failure for
// one object would fail the whole list, and would not name the object.
type transform struct {
	convert  func(runtime.Object) (runtime.Object, error) // precedes function; nil: none
	packing  Packing                                      // follows function
	strict   bool                                         // an object that can't be decoded is not left out
	mu       sync.Mutex                                   // guards the check of sealed and the setting of the transform
	sealed   bool                                         // the source has begun to read
	function atomic.Pointer[cache.TransformFunc]
}

// seal prevents changes of the transform.
func (t *transform) seal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = true
}

// isSet reports whether there is a conversion, a transform or a packing.
func (t *transform) isSet() bool {
	return t.convert != nil || t.packing != nil || t.function.Load() != nil
}

// apply returns the converted and transformed obj, and its key in the cache.
func (t *transform) apply(obj runtime.Object) (_ runtime.Object, key string, err error) {
	if obj, err = t.decoded(obj); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrDecode, err)
	}
	function := t.function.Load()
	if function == nil {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return nil, "", err
		}
		return t.packed(obj), keyOf(accessor), nil
	}
	transformed, err := call(*function, obj)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrTransform, err)
	}
	if t.convert != nil && reflect.TypeOf(transformed) != reflect.TypeOf(obj) {
		return nil, "", fmt.Errorf("%w: it returned %T, not %T", ErrTransform, transformed, obj) // typed handlers would panic
	}
	accessor, key, err := t.identify(transformed)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrTransform, err)
	}
	if object, is := transformed.(runtime.Object); is {
		return t.packed(object), key, nil
	}
	return &carrier{accessor, transformed}, key, nil
}

// identify returns the metadata and the key of what a transform has returned. Its methods panic if it embeds a nil pointer.
func (t *transform) identify(transformed any) (accessor metav1.Object, key string, err error) {
	defer func() {
		if recover() != nil {
			accessor, key, err = nil, "", fmt.Errorf("it returned %T, whose metadata can't be read", transformed)
		}
	}()
	accessor, err = meta.Accessor(transformed)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("it returned %T, which has no metadata", transformed)
	case isNil(transformed):
		return nil, "", fmt.Errorf("it returned a nil %T", transformed)
	case isNameless(accessor) && !t.strict:
		return nil, "", fmt.Errorf("it returned %T: %w", transformed, errNameless)
	}
	return accessor, keyOf(accessor), nil
}

// decoded returns obj in the source's form.
func (t *transform) decoded(obj runtime.Object) (runtime.Object, error) {
	if bad, is := obj.(*undecodable.Object); is {
		return nil, bad.Err
	}
	if accessor, err := meta.Accessor(obj); err == nil && isNameless(accessor) && !t.strict {
		return nil, errNameless
	}
	if t.convert == nil {
		return obj, nil
	}
	return t.convert(obj)
}

func call(function cache.TransformFunc, obj any) (transformed any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errtext.Panicked(r) // it concerns one object
		}
	}()
	return function(obj)
}
