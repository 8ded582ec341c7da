package lister

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
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
// errors.
//
// In three cases, dynamiclister panics and this lister does not. A nil selector selects
// everything. If a cached object is not an *unstructured.Unstructured, because a transform has
// replaced it, there is an error with the resource and the type. If indexer is nil, every call
// returns an error.
func New(indexer cache.Indexer, gvr schema.GroupVersionResource) Lister {
	return &lister{indexer: indexer, gvr: gvr}
}

type lister struct {
	indexer cache.Indexer
	gvr     schema.GroupVersionResource
}

func (l *lister) List(selector labels.Selector) ([]*unstructured.Unstructured, error) {
	if l.indexer == nil {
		return nil, errNoIndexer(l.gvr)
	}
	into := collector{gvr: l.gvr}
	err := cache.ListAll(l.indexer, orEverything(selector), into.add)
	return into.result(err)
}

func (l *lister) Get(name string) (*unstructured.Unstructured, error) {
	return get(l.indexer, l.gvr, name, name)
}

func (l *lister) Namespace(namespace string) NamespaceLister {
	return &namespaceLister{indexer: l.indexer, gvr: l.gvr, namespace: namespace}
}

type namespaceLister struct {
	indexer   cache.Indexer
	gvr       schema.GroupVersionResource
	namespace string
}

func (l *namespaceLister) List(selector labels.Selector) ([]*unstructured.Unstructured, error) {
	if l.indexer == nil {
		return nil, errNoIndexer(l.gvr)
	}
	into := collector{gvr: l.gvr}
	err := cache.ListAllByNamespace(l.indexer, l.namespace, orEverything(selector), into.add)
	return into.result(err)
}

func (l *namespaceLister) Get(name string) (*unstructured.Unstructured, error) {
	// No object has the key "/name", so Get finds none in the empty namespace, as upstream.
	return get(l.indexer, l.gvr, l.namespace+"/"+name, name)
}

func get(indexer cache.Indexer, gvr schema.GroupVersionResource, key, name string) (*unstructured.Unstructured, error) {
	if indexer == nil {
		return nil, errNoIndexer(gvr)
	}
	cached, exists, err := indexer.GetByKey(key)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	return asUnstructured(gvr, cached)
}

func errNoIndexer(gvr schema.GroupVersionResource) error {
	return fmt.Errorf("lister: %s: the indexer is nil", gvr.GroupResource())
}

// collector collects the objects from the callbacks of client-go's list functions, and the error of
// the first object of another type.
type collector struct {
	gvr     schema.GroupVersionResource
	objects []*unstructured.Unstructured
	err     error
}

func (c *collector) add(cached any) {
	obj, err := asUnstructured(c.gvr, cached)
	if err != nil {
		if c.err == nil {
			c.err = err
		}
		return
	}
	c.objects = append(c.objects, obj)
}

func (c *collector) result(err error) ([]*unstructured.Unstructured, error) {
	if err == nil {
		err = c.err
	}
	if err != nil {
		return nil, err
	}
	return c.objects, nil
}

func asUnstructured(gvr schema.GroupVersionResource, cached any) (*unstructured.Unstructured, error) {
	obj, ok := cached.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("lister: %s: cached object is a %T, want *unstructured.Unstructured: a transform changed its type, read the informer's indexer instead",
			gvr.GroupResource(), cached)
	}
	return obj, nil
}

func orEverything(selector labels.Selector) labels.Selector {
	if selector == nil {
		return labels.Everything()
	}
	return selector
}
