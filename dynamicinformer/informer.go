package dynamicinformer

import (
	"cmp"
	"sync"
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

// informer is client-go's shared informer on one resource, with its source and its lister. The methods
// that replace client-go's also inform other parts: the client whether there is a transform, the
// source which handler gets errors, and the status about the calls of event handlers.
type informer struct {
	cache.SharedIndexInformer
	gvr      schema.GroupVersionResource
	source   *source.Source
	choice   *choice // the client; nil: the factory has only one
	errors   *errorHandlers
	handlers *handlers.Set
	listed   <-chan struct{} // closes when the informer has listed once
	resync   time.Duration   // of handlers without a period of their own

	over  func() bool                         // reports whether the factory will not run it any more; nil: it has no factory
	guard func(cache.Indexers) cache.Indexers // nil: index functions are called directly

	// before is the stopped informer that this one replaces: its cache is read until this
	// informer has synced. Nil if there is none.
	before atomic.Pointer[informer]

	mu        sync.Mutex     // guards unguarded, and makes a setting and the report of it one step
	unguarded cache.Indexers // the original index functions, if there is a guard
}

var _ informers.GenericInformer = (*informer)(nil)

// newInformer returns client-go's shared informer on the source of cfg. Errors of the source go to
// report, or to the informer's watch error handler if a user sets one. The example object is nil: with
// a kind, the reflector would drop objects of another kind and only log them.
func newInformer(cfg source.Config, report errorHandler, resync time.Duration, indexers cache.Indexers, metrics *informermetrics.Relay) *informer {
	errorHandlers := &errorHandlers{usual: report, resource: cfg.GVR.String()}
	cfg.Report = errorHandlers.call
	s := source.New(cfg)
	lw := s.ListerWatcher()
	resync = max(0, resync) // below zero, the reflector's timer would fire without a pause
	opts := cache.SharedIndexInformerOptions{
		ResyncPeriod:      cmp.Or(resync, resyncCheck),
		Indexers:          indexers,
		ObjectDescription: cfg.GVR.String(),
	}
	metrics.Identify(&opts)
	shared := cache.NewSharedIndexInformerWithOptions(lw, nil, opts)
	indexer := shared.GetIndexer()
	s.LookUp(func(key string) (any, bool) {
		item, there, err := indexer.GetByKey(key)
		return item, there && err == nil
	})
	errorHandlers.standIn = standIn(lw, cfg.GVR)
	client, _ := cfg.Client.(*choice)
	return &informer{
		SharedIndexInformer: shared, gvr: cfg.GVR, source: s, choice: client, errors: errorHandlers,
		handlers: handlers.NewSet(shared, s), listed: shared.HasSyncedChecker().Done(), resync: resync,
	}
}

// Informer returns the shared informer.
func (i *informer) Informer() cache.SharedIndexInformer { return i }

// Lister returns a lister on the informer's cache. Its objects are shared and
// read-only.
func (i *informer) Lister() cache.GenericLister {
	return lister.NewRuntimeObjectShim(lister.New(i.filled().GetIndexer(), i.gvr))
}

// readFrom makes i's lister read old's cache until i has synced. Otherwise a program that calls Lister
// again for each read would find no objects after its informer has stopped.
func (i *informer) readFrom(old *informer) { i.before.Store(old.filled()) }

// filled returns the informer whose cache is read.
func (i *informer) filled() *informer {
	before := i.before.Load()
	if before == nil {
		return i
	}
	if closed(i.listed) {
		i.before.Store(nil) // releases the old cache
		return i
	}
	return before
}
