package lister

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/objectlister"
)

// NewRuntimeObjectShim returns lister as a cache.GenericLister, the interface that
// informers.GenericInformer uses. The objects are those of the cache: they are read-only, so
// call DeepCopy before a write.
//
// If Get fails, it returns a nil object. dynamiclister's shim returns a runtime.Object that is
// not nil but holds a nil pointer.
func NewRuntimeObjectShim(lister Lister) cache.GenericLister {
	return &genericLister{lister: lister}
}

type genericLister struct{ lister Lister }

func (g *genericLister) List(selector labels.Selector) ([]runtime.Object, error) {
	return objectlister.Objects(g.lister.List(selector))
}

func (g *genericLister) Get(name string) (runtime.Object, error) {
	return objectlister.Object(g.lister.Get(name))
}

func (g *genericLister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return &genericNamespaceLister{lister: g.lister.Namespace(namespace)}
}

type genericNamespaceLister struct{ lister NamespaceLister }

func (g *genericNamespaceLister) List(selector labels.Selector) ([]runtime.Object, error) {
	return objectlister.Objects(g.lister.List(selector))
}

func (g *genericNamespaceLister) Get(name string) (runtime.Object, error) {
	return objectlister.Object(g.lister.Get(name))
}
