package metadatalister

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/objectlister"
)

// Lister reads the metadata of all objects of one resource. The objects are those of the cache: they are
// read-only, so call DeepCopy before a write.
type Lister interface {
	// List returns the objects that selector matches, in no order.
	List(selector labels.Selector) ([]*metav1.PartialObjectMetadata, error)

	// Get returns the object with the cache key name: the name of a cluster-scoped
	// object, or namespace/name of a namespaced object. If there is no such object,
	// apierrors.IsNotFound is true for the error.
	Get(name string) (*metav1.PartialObjectMetadata, error)

	// Namespace returns a lister of the objects in namespace. If namespace is empty,
	// List returns the objects of all namespaces, and Get finds no object.
	Namespace(namespace string) NamespaceLister
}

// NamespaceLister reads the metadata of the objects of one resource in one namespace. The objects are those of
// the cache: they are read-only, so call DeepCopy before a write.
type NamespaceLister interface {
	// List returns the objects that selector matches, in no order.
	List(selector labels.Selector) ([]*metav1.PartialObjectMetadata, error)

	// Get returns the object with that name. If there is no such object,
	// apierrors.IsNotFound is true for the error.
	Get(name string) (*metav1.PartialObjectMetadata, error)
}

// New returns a lister that reads the objects of indexer. It uses gvr only in the texts of
// errors.
//
// In three cases, client-go's metadatalister panics and this lister does not. A nil selector selects
// everything. If a cached object is not an *metav1.PartialObjectMetadata, because a transform has
// replaced it, there is an error with the resource and the type. If indexer is nil, every call
// returns an error. A list that fails returns no objects; client-go's metadatalister returns some of them.
func New(indexer cache.Indexer, gvr schema.GroupVersionResource) Lister {
	return &lister{objectlister.Of[*metav1.PartialObjectMetadata]{Package: "metadatalister", Indexer: indexer, GVR: gvr}}
}

type lister struct {
	objectlister.Of[*metav1.PartialObjectMetadata]
}

func (l *lister) Get(name string) (*metav1.PartialObjectMetadata, error) { return l.Of.Get(name, name) }

func (l *lister) Namespace(namespace string) NamespaceLister {
	return &namespaceLister{lister: l, namespace: namespace}
}

type namespaceLister struct {
	lister    *lister
	namespace string
}

func (l *namespaceLister) List(selector labels.Selector) ([]*metav1.PartialObjectMetadata, error) {
	return l.lister.ListIn(l.namespace, selector)
}

func (l *namespaceLister) Get(name string) (*metav1.PartialObjectMetadata, error) {
	// No object has the key "/name", so Get finds none in the empty namespace, as upstream.
	return l.lister.Of.Get(l.namespace+"/"+name, name)
}

// NewRuntimeObjectShim returns lister as a cache.GenericLister, the interface that
// informers.GenericInformer uses. The objects are those of the cache: they are read-only, so
// call DeepCopy before a write.
//
// If Get fails, it returns a nil object. client-go's shim returns a runtime.Object that is
// not nil but holds a nil pointer.
func NewRuntimeObjectShim(lister Lister) cache.GenericLister {
	return objectlister.Generic[*metav1.PartialObjectMetadata, NamespaceLister](lister)
}
