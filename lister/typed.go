package lister

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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
type Typed[T Object] struct {
	objects     objectlister.Of[*unstructured.Unstructured]
	invalid     error // why T is no type of objects, or nil
	converter   *gotype.Converter[T]
	conversions conversions[T]
}

// NewTyped returns a lister that reads the objects of indexer as objects of type T, such as *corev1.Pod. It
// uses gvr only in the texts of errors. If T is not a pointer to a struct, or indexer is nil, every call
// returns an error.
func NewTyped[T Object](indexer cache.Indexer, gvr schema.GroupVersionResource) *Typed[T] {
	t := &Typed[T]{
		objects:   objectlister.New[*unstructured.Unstructured]("lister", indexer, gvr),
		converter: gotype.NewConverter[T](),
	}
	if err := (gotype.Of[T]{}).Check(); err != nil {
		t.invalid = fmt.Errorf("lister: %s: %w", gvr.GroupResource(), err)
	}
	return t
}

// List returns the objects that selector matches, in no order. If objects can't be converted to T, it returns
// all others, and an error that joins a [*ConversionError] for each of these objects, sorted by name. A nil
// selector selects everything.
func (t *Typed[T]) List(selector labels.Selector) ([]T, error) {
	return t.list(metav1.NamespaceAll, selector)
}

// Get returns the object with the cache key name: the name of a cluster-scoped object, or namespace/name of a
// namespaced object. If there is no such object, apierrors.IsNotFound is true for the error. If the object
// can't be converted to T, the error is a [*ConversionError].
func (t *Typed[T]) Get(name string) (T, error) { return t.get(name, name) }

// ByIndex returns the objects that have value in an index of the indexer, as List does. It returns an error if
// there is no such index.
func (t *Typed[T]) ByIndex(indexName, value string) ([]T, error) {
	objects, _, err := t.collect(func(visit func(any)) error { return t.objects.EachByIndex(indexName, value, visit) })
	return objects, err
}

// Namespace returns a lister of the objects in namespace. If namespace is empty, List returns the objects of
// all namespaces, and Get finds no object.
func (t *Typed[T]) Namespace(namespace string) TypedNamespace[T] {
	return TypedNamespace[T]{t, namespace}
}

// TypedNamespace is [Typed] in one namespace.
type TypedNamespace[T Object] struct {
	typed     *Typed[T]
	namespace string
}

// List returns the objects that selector matches, as [Typed.List] does.
func (n TypedNamespace[T]) List(selector labels.Selector) ([]T, error) {
	return n.typed.list(n.namespace, selector)
}

// Get returns the object with that name, as [Typed.Get] does.
func (n TypedNamespace[T]) Get(name string) (T, error) {
	return n.typed.get(n.namespace+"/"+name, name)
}

func (t *Typed[T]) list(namespace string, selector labels.Selector) ([]T, error) {
	objects, kept, err := t.collect(func(visit func(any)) error { return t.objects.Each(namespace, selector, visit) })
	if namespace == metav1.NamespaceAll && (selector == nil || selector.Empty()) {
		t.conversions.trim(kept, t.most(), t.cached)
	}
	return objects, err
}

// most returns the maximum number of results; 0: all.
func (t *Typed[T]) most() int {
	if t.objects.IsPacked() {
		return mostOfPacked
	}
	return 0
}

// collect converts the objects that each visits. Kept is the number of conversions that it has read, with those that failed. An object of
// another type has none.
func (t *Typed[T]) collect(each func(visit func(cached any)) error) (objects []T, kept int, err error) {
	if t.invalid != nil {
		return nil, 0, t.invalid
	}
	var failed []error
	err = each(func(cached any) {
		object, err := t.convert(cached)
		if err == nil || errors.Is(err, ErrConversion) {
			kept++
		}
		if err != nil {
			failed = append(failed, err)
			return
		}
		objects = append(objects, object)
	})
	if err != nil {
		return nil, 0, err
	}
	t.conversions.sweep(t.cached)
	slices.SortFunc(failed, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return objects, kept, errors.Join(failed...)
}

func (t *Typed[T]) get(key, name string) (T, error) {
	var none T
	if t.invalid != nil {
		return none, t.invalid
	}
	cached, err := t.objects.GetCached(key, name)
	if err != nil {
		t.conversions.drop(key)
		return none, err
	}
	defer t.conversions.sweep(t.cached)
	return t.convert(cached)
}

// cached reports whether the cache has an object with that name.
func (t *Typed[T]) cached(name cache.ObjectName) bool {
	_, there, err := t.objects.Indexer.GetByKey(name.String())
	return there && err == nil
}

// convert returns cached as a T.
func (t *Typed[T]) convert(cached any) (T, error) {
	from, is := cached.(source)
	if !is || !t.objects.IsPacked() {
		object, err := t.objects.Object(cached)
		if err != nil {
			var none T
			return none, err
		}
		return t.keep(object, 0, func() (T, error) { return t.converter.Convert(object.Object) })
	}
	return t.keep(from, mostOfPacked, func() (T, error) {
		return t.converter.Decode(from, func() map[string]any { return from.Unstructured().Object })
	})
}

// source is a packed object, from which T is decoded without a tree.
type source interface {
	fielder
	gotype.Source
	Unstructured() *unstructured.Unstructured
}

// keep returns the conversion of object, and makes it if it is not known. Most is that of [conversions.put].
func (t *Typed[T]) keep(object metav1.Object, most int, convert func() (T, error)) (T, error) {
	name := cache.MetaObjectToName(object)
	if known, there := t.conversions.get(name, object); there {
		return known.to, known.err
	}
	to, err := convert()
	if err != nil {
		err = &ConversionError{GVR: t.objects.GVR, Name: name.String(), Err: err}
	}
	return t.conversions.put(name, object, newConversion(object, to, err), most)
}

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
