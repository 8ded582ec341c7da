package lister

import (
	"cmp"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/objectlister"
)

// view reads a cache as objects of type T, and keeps the results of conversions. It is safe for concurrent use.
type view[T any] struct {
	objects     objectlister.Of[*unstructured.Unstructured]
	invalid     error // why there is no such view, or nil
	convert     converter[T]
	conversions conversions[T]
}

// converter converts objects to T. It is safe for concurrent use.
type converter[T any] interface {
	ofTree(object *unstructured.Unstructured) (T, error)
	ofPacked(object packedObject) (T, error)
	// ofOther converts an object of another form. It takes so little time that the result is not kept. It returns false if it can't.
	ofOther(object any) (T, bool)
}

// packedObject is an object whose fields can be read without a tree.
type packedObject interface {
	fielder
	gotype.Source
	metav1.Object
	Unstructured() *unstructured.Unstructured
}

// list returns the objects in namespace that selector matches, and an error that joins those of the others.
func (v *view[T]) list(namespace string, selector labels.Selector) ([]T, error) {
	objects, kept, err := v.collect(func(visit func(any)) error { return v.objects.Each(namespace, selector, visit) })
	if namespace == metav1.NamespaceAll && (selector == nil || selector.Empty()) {
		v.conversions.trim(kept, v.most(), v.cached)
	}
	return objects, err
}

// byIndex returns the objects that have value in an index, as list does.
func (v *view[T]) byIndex(indexName, value string) ([]T, error) {
	objects, _, err := v.collect(func(visit func(any)) error { return v.objects.EachByIndex(indexName, value, visit) })
	return objects, err
}

// get returns the object under key, which is called name in errors.
func (v *view[T]) get(key, name string) (T, error) {
	var none T
	if v.invalid != nil {
		return none, v.invalid
	}
	cached, err := v.objects.GetCached(key, name)
	if err != nil {
		v.conversions.drop(key)
		return none, err
	}
	defer v.conversions.sweep(v.cached)
	object, _, err := v.object(cached)
	return object, err
}

// collect converts the objects that each visits. Kept is the number of conversions that it has read, with those that failed. An object of
// another form has none.
func (v *view[T]) collect(each func(visit func(cached any)) error) (objects []T, kept int, err error) {
	if v.invalid != nil {
		return nil, 0, v.invalid
	}
	var failed []error
	err = each(func(cached any) {
		object, keeps, err := v.object(cached)
		if keeps {
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
	v.conversions.sweep(v.cached)
	slices.SortFunc(failed, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return objects, kept, errors.Join(failed...)
}

// most returns the maximum number of results that are kept; 0: all.
func (v *view[T]) most() int {
	if v.objects.IsPacked() {
		return mostOfPacked
	}
	return 0
}

// cached reports whether the cache has an object with that name.
func (v *view[T]) cached(name cache.ObjectName) bool {
	_, there, err := v.objects.Indexer.GetByKey(name.String())
	return there && err == nil
}

// object returns cached as a T, and whether the result is kept.
func (v *view[T]) object(cached any) (object T, kept bool, err error) {
	if from, is := cached.(packedObject); is && v.objects.IsPacked() {
		object, err = v.keep(from, func() (T, error) { return v.convert.ofPacked(from) })
		return object, true, err
	}
	if to, is := v.convert.ofOther(cached); is {
		return to, false, nil
	}
	tree, err := v.objects.Object(cached)
	if err != nil {
		return object, false, err
	}
	object, err = v.keep(tree, func() (T, error) { return v.convert.ofTree(tree) })
	return object, true, err
}

// keep returns the conversion of object, and makes it if it is not known.
func (v *view[T]) keep(object metav1.Object, convert func() (T, error)) (T, error) {
	name := cache.MetaObjectToName(object)
	if known, there := v.conversions.get(name, object); there {
		return known.to, known.err
	}
	to, err := convert()
	if err != nil {
		err = &ConversionError{GVR: v.objects.GVR, Name: name.String(), Err: err}
	}
	return v.conversions.put(name, object, newConversion(object, to, err), v.most())
}
