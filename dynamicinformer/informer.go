package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/lister"
)

// genericInformer is one resource's shared informer and the lister on its cache.
type genericInformer struct {
	informer cache.SharedIndexInformer
	gvr      schema.GroupVersionResource
}

var _ informers.GenericInformer = (*genericInformer)(nil)

// newInformer returns client-go's shared informer on lw. The example object has
// no kind: with one the reflector would drop, with a log line only, whatever a
// server sends of another kind.
func newInformer(lw cache.ListerWatcher, gvr schema.GroupVersionResource, resync time.Duration, indexers cache.Indexers) *genericInformer {
	return &genericInformer{
		gvr: gvr,
		informer: cache.NewSharedIndexInformerWithOptions(lw, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{
			ResyncPeriod:      max(0, resync), // below zero the reflector's timer never rests
			Indexers:          indexers,
			ObjectDescription: gvr.String(),
		}),
	}
}

// Informer returns the shared informer.
func (g *genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

// Lister returns a lister on the informer's cache. Its objects are shared and
// read-only.
func (g *genericInformer) Lister() cache.GenericLister {
	return lister.NewRuntimeObjectShim(lister.New(g.informer.GetIndexer(), g.gvr))
}
