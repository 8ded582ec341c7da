package lister

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/objectlister"
)

// Object is the constraint on the type T of [NewTyped]: a pointer to a struct with TypeMeta and
// ObjectMeta.
type Object interface {
	cache.Object
	runtime.Object
	metav1.Object
}

// Typed reads a cache of unstructured objects as objects of type T. It is a view: it needs no watch and no
// cache of its own. Each object is converted when it is first read, and the result is kept until the cache has
// another object in its place. The results of deleted objects are dropped by later reads, at the latest by
// a List of all objects. Typed starts no goroutine. Create one Typed and keep it, since each has its own
// results. It is safe for concurrent use.
//
// With a packed cache, it keeps at most 1,024 results to save memory, and drops an arbitrary one to make room. It decodes T directly from the
// packed object.
//
// Objects of type T are shared by all callers, and may have parts of the cached objects. They are read-only:
// call DeepCopy before the first write. Fields that T does not have are dropped.
//
// An object that can't be converted to T is an error. AcquireTyped of package dynamicinformer leaves such an object
// out of its cache instead.
type Typed[T Object] struct{ view view[T] }

// NewTyped returns a lister that reads the objects of indexer as objects of type T, such as *corev1.Pod. It
// uses gvr only in the texts of errors. If T is not a pointer to a struct, or indexer is nil, every call
// returns an error.
func NewTyped[T Object](indexer cache.Indexer, gvr schema.GroupVersionResource) *Typed[T] {
	if err := (gotype.Of[T]{}).Check(); err != nil {
		return &Typed[T]{view[T]{invalid: fmt.Errorf("lister: %s: %w", gvr.GroupResource(), err)}}
	}
	return &Typed[T]{view[T]{
		objects: objectlister.New[*unstructured.Unstructured]("lister", indexer, gvr),
		convert: typedOf[T]{gotype.NewConverter[T]()},
	}}
}

// List returns the objects that selector matches, in no order. If objects can't be converted to T, it returns
// all others, and an error that joins a [*ConversionError] for each of these objects, sorted by name. A nil
// selector selects everything.
func (t *Typed[T]) List(selector labels.Selector) ([]T, error) {
	return t.view.list(metav1.NamespaceAll, selector)
}

// Get returns the object with the cache key name: the name of a cluster-scoped object, or namespace/name of a
// namespaced object. If there is no such object, apierrors.IsNotFound is true for the error. If the object
// can't be converted to T, the error is a [*ConversionError].
func (t *Typed[T]) Get(name string) (T, error) { return t.view.get(name, name) }

// ByIndex returns the objects that have value in an index of the indexer, as List does. It returns an error if
// there is no such index.
func (t *Typed[T]) ByIndex(indexName, value string) ([]T, error) {
	return t.view.byIndex(indexName, value)
}

// Namespace returns a lister of the objects in namespace. If namespace is empty, List returns the objects of
// all namespaces, and Get finds no object.
func (t *Typed[T]) Namespace(namespace string) TypedNamespace[T] {
	return TypedNamespace[T]{&t.view, namespace}
}

// TypedNamespace is [Typed] in one namespace.
type TypedNamespace[T Object] struct {
	view      *view[T]
	namespace string
}

// List returns the objects that selector matches, as [Typed.List] does.
func (n TypedNamespace[T]) List(selector labels.Selector) ([]T, error) {
	return n.view.list(n.namespace, selector)
}

// Get returns the object with that name, as [Typed.Get] does.
func (n TypedNamespace[T]) Get(name string) (T, error) {
	return n.view.get(n.namespace+"/"+name, name)
}

// typedOf converts objects to T.
type typedOf[T Object] struct{ *gotype.Converter[T] }

// ofTree implements converter.
func (t typedOf[T]) ofTree(object *unstructured.Unstructured) (T, error) {
	return t.Convert(object.Object)
}

// ofPacked implements converter. T is decoded without a tree.
func (t typedOf[T]) ofPacked(object packedObject) (T, error) {
	return t.Decode(object, func() map[string]any { return object.Unstructured().Object })
}

// ofOther implements converter.
func (t typedOf[T]) ofOther(any) (none T, is bool) { return none, false }

// ErrConversion is matched by every [*ConversionError].
var ErrConversion = errors.New("the object can't be converted")

// ConversionError reports that an object can't be converted to the type of a [Typed]. Its text has no values
// of the object.
type ConversionError struct {
	GVR schema.GroupVersionResource
	// Name is the object's cache key, namespace/name.
	Name string
	// Err names the Go field that the object does not fit.
	Err error
}

func (e *ConversionError) Error() string {
	return fmt.Sprintf("%s %q: %v", e.GVR.GroupResource(), e.Name, e.Err)
}

// Is reports whether target is ErrConversion.
func (e *ConversionError) Is(target error) bool { return target == ErrConversion }

// Unwrap returns the cause.
func (e *ConversionError) Unwrap() error { return e.Err }
