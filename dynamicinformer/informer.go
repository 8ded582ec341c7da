package dynamicinformer

import (
	"cmp"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/handlers"
	"github.com/gvrkit/gvrkit/internal/informermetrics"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/lister"
)

// genericInformer is one resource's shared informer, what feeds it, and the lister on its
// cache.
type genericInformer struct {
	informer *sharedInformer
	source   *source.Source
	gvr      schema.GroupVersionResource
	listed   <-chan struct{} // closes when the informer has listed once

	// before is the cache to read until the informer has synced: that of a stopped
	// informer that this one has taken the place of. Nil if there is none.
	before atomic.Pointer[genericInformer]
}

var _ informers.GenericInformer = (*genericInformer)(nil)

// newInformer returns client-go's shared informer on the source of cfg, whose errors go to
// report, or to the informer's own watch error handler if it is given one. The example
// object has no kind: with one the reflector would drop, with a log line only, whatever a
// server sends of another kind.
func newInformer(cfg source.Config, report errorHandler, resync time.Duration, indexers cache.Indexers, metrics *informermetrics.Relay) *genericInformer {
	errorHandlers := &errorHandlers{usual: report, resource: cfg.GVR.String()}
	cfg.Report = errorHandlers.call
	s := source.New(cfg)
	lw := s.ListerWatcher()
	resync = max(0, resync) // below zero the reflector's timer never rests
	opts := cache.SharedIndexInformerOptions{
		ResyncPeriod:      cmp.Or(resync, resyncCheck),
		Indexers:          indexers,
		ObjectDescription: cfg.GVR.String(),
	}
	metrics.Identify(&opts)
	informer := cache.NewSharedIndexInformerWithOptions(lw, nil, opts)
	indexer := informer.GetIndexer()
	s.LookUp(func(key string) (any, bool) {
		item, there, err := indexer.GetByKey(key)
		return item, there && err == nil
	})
	errorHandlers.standIn = standIn(lw, cfg.GVR)
	client, _ := cfg.Client.(*choice)
	return &genericInformer{
		gvr: cfg.GVR, source: s, listed: informer.HasSyncedChecker().Done(),
		informer: &sharedInformer{
			SharedIndexInformer: informer, choice: client, source: s, errors: errorHandlers, handlers: handlers.NewSet(informer, s), resync: resync,
		},
	}
}

// Informer returns the shared informer.
func (g *genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

// Lister returns a lister on the informer's cache. Its objects are shared and
// read-only.
func (g *genericInformer) Lister() cache.GenericLister {
	return lister.NewRuntimeObjectShim(lister.New(g.filled().informer.GetIndexer(), g.gvr))
}

// readFrom makes g's lister read old's cache until g has synced. A program that asks for the lister
// each time would otherwise find no objects as soon as its informer has been told to stop.
func (g *genericInformer) readFrom(old *genericInformer) { g.before.Store(old.filled()) }

// filled returns whose cache to read.
func (g *genericInformer) filled() *genericInformer {
	before := g.before.Load()
	if before == nil {
		return g
	}
	if closed(g.listed) {
		g.before.Store(nil) // lets go of the old cache
		return g
	}
	return before
}
