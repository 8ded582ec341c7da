// Package objectlister has the common code of the listers of all forms of objects: [Of] reads the objects
// of one Go type from an indexer. It does not know what the types are.
package objectlister

import (
	"cmp"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Of reads the objects of one resource, which are of type T, from an indexer. Create it with [New].
type Of[T runtime.Object] struct {
	Package string // the package of the lister, for the texts of errors
	Indexer cache.Indexer
	GVR     schema.GroupVersionResource // for the texts of errors

	packed bool          // Indexer is that of a [Packed]
	unpack func(any) any // returns what users get for a cached object; nil: the same
}

// Packed is an indexer that unpacks the objects of a cache for its users.
type Packed interface {
	// Packed returns an indexer of the objects as they are cached, and the function that unpacks them. The function is nil if
	// they are not packed.
	Packed() (cached cache.Indexer, unpack func(cached any) any)
}

// New returns a reader of indexer. If that is a [Packed], objects are selected before they are unpacked, and only the selected ones
// are unpacked.
func New[T runtime.Object](pkg string, indexer cache.Indexer, gvr schema.GroupVersionResource) Of[T] {
	if packed, is := indexer.(Packed); is {
		if cached, unpack := packed.Packed(); unpack != nil {
			return Of[T]{Package: pkg, Indexer: cached, GVR: gvr, packed: true, unpack: unpack}
		}
	}
	return Of[T]{Package: pkg, Indexer: indexer, GVR: gvr}
}

// Cached returns a reader of the same objects as they are cached.
func Cached[T, U runtime.Object](l *Of[U]) *Of[T] {
	return &Of[T]{Package: l.Package, Indexer: l.Indexer, GVR: l.GVR, packed: l.packed}
}

// IsPacked reports whether [Of.Object] unpacks objects.
func (l *Of[T]) IsPacked() bool { return l.unpack != nil }

// List returns the objects that selector matches; a nil selector matches all.
func (l *Of[T]) List(selector labels.Selector) ([]T, error) {
	return l.ListIn(metav1.NamespaceAll, selector)
}

// ListIn returns the objects in namespace that selector matches; a nil selector matches all, and an
// empty namespace means all namespaces.
func (l *Of[T]) ListIn(namespace string, selector labels.Selector) ([]T, error) {
	var objects []T
	var wrong error
	err := l.Each(namespace, selector, func(cached any) {
		object, err := l.Object(cached)
		if err == nil {
			objects = append(objects, object)
		} else if wrong == nil {
			wrong = err
		}
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// Each calls visit for each cached object of any type that ListIn would return. The indexer is not locked
// during the calls.
func (l *Of[T]) Each(namespace string, selector labels.Selector, visit func(cached any)) error {
	if l.Indexer == nil {
		return l.errNoIndexer()
	}
	if selector == nil {
		selector = labels.Everything()
	}
	if !l.packed || selector.Empty() || labels.MatchesNothing(selector) {
		return cache.ListAllByNamespace(l.Indexer, namespace, selector, visit)
	}
	var wrong error
	err := cache.ListAllByNamespace(l.Indexer, namespace, labels.Everything(), func(cached any) {
		of, err := labelsOf(cached)
		switch {
		case err != nil:
			wrong = err
		case selector.Matches(of):
			visit(cached)
		}
	})
	return cmp.Or(err, wrong)
}

// labelsOf returns the labels of a cached object, without a map of them if the object has a view.
func labelsOf(cached any) (labels.Labels, error) {
	if view, has := cached.(interface{ Labels() labels.Labels }); has {
		return view.Labels(), nil
	}
	object, err := meta.Accessor(cached)
	if err != nil {
		return nil, err
	}
	return labels.Set(object.GetLabels()), nil
}

// EachByIndex calls visit for each cached object that has value in the index.
func (l *Of[T]) EachByIndex(index, value string, visit func(cached any)) error {
	if l.Indexer == nil {
		return l.errNoIndexer()
	}
	found, err := l.Indexer.ByIndex(index, value)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", l.Package, l.GVR.GroupResource(), err)
	}
	for _, cached := range found {
		visit(cached)
	}
	return nil
}

// Get returns the object under key in the cache. If there is none, the error names it.
func (l *Of[T]) Get(key, name string) (T, error) {
	cached, err := l.GetCached(key, name)
	if err != nil {
		var none T
		return none, err
	}
	return l.Object(cached)
}

// GetCached is Get for a cached object of any type.
func (l *Of[T]) GetCached(key, name string) (any, error) {
	if l.Indexer == nil {
		return nil, l.errNoIndexer()
	}
	cached, exists, err := l.Indexer.GetByKey(key)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, apierrors.NewNotFound(l.GVR.GroupResource(), name)
	}
	return cached, nil
}

// Object returns cached as a T.
func (l *Of[T]) Object(cached any) (T, error) {
	if l.unpack != nil {
		cached = l.unpack(cached)
	}
	object, is := cached.(T)
	if !is {
		return object, fmt.Errorf("%s: %s: cached object is a %T, want %T: the informer caches another form of objects, or a transform changed it; read the informer's indexer instead",
			l.Package, l.GVR.GroupResource(), cached, object)
	}
	return object, nil
}

func (l *Of[T]) errNoIndexer() error {
	return fmt.Errorf("%s: %s: the indexer is nil", l.Package, l.GVR.GroupResource())
}

// Lister is the interface of the listers of one form. N is its NamespaceLister.
type Lister[T runtime.Object, N NamespaceLister[T]] interface {
	NamespaceLister[T]
	Namespace(namespace string) N
}

// NamespaceLister is the interface of the listers of one form in one namespace.
type NamespaceLister[T runtime.Object] interface {
	List(selector labels.Selector) ([]T, error)
	Get(name string) (T, error)
}

// Generic returns l as a cache.GenericLister. If Get fails, it returns a nil object.
func Generic[T runtime.Object, N NamespaceLister[T]](l Lister[T, N]) cache.GenericLister {
	return generic[T, N]{genericNamespace[T]{l}, l}
}

type generic[T runtime.Object, N NamespaceLister[T]] struct {
	genericNamespace[T]
	all Lister[T, N]
}

func (g generic[T, N]) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return genericNamespace[T]{g.all.Namespace(namespace)}
}

type genericNamespace[T runtime.Object] struct{ lister NamespaceLister[T] }

func (g genericNamespace[T]) List(selector labels.Selector) ([]runtime.Object, error) {
	found, err := g.lister.List(selector)
	if err != nil {
		return nil, err
	}
	objects := make([]runtime.Object, len(found))
	for i, object := range found {
		objects[i] = object
	}
	return objects, nil
}

func (g genericNamespace[T]) Get(name string) (runtime.Object, error) {
	object, err := g.lister.Get(name)
	if err != nil {
		return nil, err // a literal nil, not an interface with a nil pointer
	}
	return object, nil
}
