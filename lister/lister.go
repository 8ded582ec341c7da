package lister

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/objectlister"
)

// Lister reads all objects of one resource. The objects are those of the cache: they are
// read-only, so call DeepCopy before a write.
type Lister interface {
	// List returns the objects that selector matches, in no order.
	List(selector labels.Selector) ([]*unstructured.Unstructured, error)

	// Get returns the object with the cache key name: the name of a cluster-scoped
	// object, or namespace/name of a namespaced object. If there is no such object,
	// apierrors.IsNotFound is true for the error.
	Get(name string) (*unstructured.Unstructured, error)

	// Namespace returns a lister of the objects in namespace. If namespace is empty,
	// List returns the objects of all namespaces, and Get finds no object.
	Namespace(namespace string) NamespaceLister
}

// NamespaceLister reads the objects of one resource in one namespace. The objects are those of
// the cache: they are read-only, so call DeepCopy before a write.
type NamespaceLister interface {
	// List returns the objects that selector matches, in no order.
	List(selector labels.Selector) ([]*unstructured.Unstructured, error)

	// Get returns the object with that name. If there is no such object,
	// apierrors.IsNotFound is true for the error.
	Get(name string) (*unstructured.Unstructured, error)
}

// New returns a lister that reads the objects of indexer. It uses gvr only in the texts of
// errors. [NewReader] has more ways to read.
//
// In three cases, dynamiclister panics and this lister does not. A nil selector selects
// everything. If a cached object is neither unstructured nor packed, because a transform has
// replaced it, there is an error with the resource and the type. If indexer is nil, every call
// returns an error. There is one more difference: a list with such an error returns no objects, and
// that of dynamiclister returns some of them.
func New(indexer cache.Indexer, gvr schema.GroupVersionResource) Lister {
	return NewReader(indexer, gvr)
}

// NewRuntimeObjectShim returns lister as a cache.GenericLister, the interface that
// informers.GenericInformer uses. The objects are those of the cache: they are read-only, so
// call DeepCopy before a write.
//
// If Get fails, it returns a nil object. dynamiclister's shim returns a runtime.Object that is
// not nil but holds a nil pointer.
func NewRuntimeObjectShim(lister Lister) cache.GenericLister {
	return objectlister.Generic[*unstructured.Unstructured, NamespaceLister](lister)
}
