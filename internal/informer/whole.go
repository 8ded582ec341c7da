package informer

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/typestate"
	"github.com/gvrkit/gvrkit/status"
)

// Incomplete returns a [*status.IncompleteError] if the cache does not have the objects of namespace, or, if that is
// empty, of any namespace of the informer's set. If these namespaces are not known yet, the error says so.
func (i *Informer) Incomplete(namespace string) error {
	missing, known, err := i.source.Unlisted(namespace)
	if !known {
		return &status.IncompleteError{GVR: i.gvr, Err: err}
	}
	if len(missing) == 0 {
		return nil
	}
	return &status.IncompleteError{GVR: i.gvr, Namespaces: typestate.Namespaces(missing)}
}

// whole returns a constructor of listers that report an incomplete cache of a set of namespaces.
func (i *Informer) whole(of func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister) func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister {
	return func(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister {
		lister := of(indexer, gvr)
		if !i.source.HasSet() {
			return lister
		}
		return wholeLister{wholeNamespace{lister, i, ""}, lister}
	}
}

// wholeLister is a lister that returns an error, beside the objects, if the cache does not have all namespaces.
type wholeLister struct {
	wholeNamespace
	lister cache.GenericLister
}

// ByNamespace implements cache.GenericLister.
func (l wholeLister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return wholeNamespace{l.lister.ByNamespace(namespace), l.informer, namespace}
}

// wholeNamespace is wholeLister in one namespace; empty: in all.
type wholeNamespace struct {
	lister    cache.GenericNamespaceLister
	informer  *Informer
	namespace string
}

// List implements cache.GenericNamespaceLister.
func (n wholeNamespace) List(selector labels.Selector) ([]runtime.Object, error) {
	incomplete := n.informer.Incomplete(n.namespace) // before the read, which may have a later list
	objects, err := n.lister.List(selector)
	if err == nil {
		err = incomplete
	}
	return objects, err
}

// Get implements cache.GenericNamespaceLister. An object of a namespace that is not in the cache may exist.
func (n wholeNamespace) Get(name string) (runtime.Object, error) {
	namespace := n.namespace
	if key, wrong := cache.ParseObjectName(name); namespace == "" && wrong == nil {
		namespace = key.Namespace
	}
	var incomplete error
	if namespace != "" {
		incomplete = n.informer.Incomplete(namespace) // before the read, which may have a later list
	}
	object, err := n.lister.Get(name)
	if apierrors.IsNotFound(err) && incomplete != nil {
		return nil, incomplete
	}
	return object, err
}
