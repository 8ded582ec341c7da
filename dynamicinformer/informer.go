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

// informer is client-go's shared informer on one resource, with what feeds it and the lister on its
// cache. Its own methods, in place of client-go's, pass on what others have to know: the client
// whether there is a transform, the source which handler gets errors, and the status how the event
// handlers do.
type informer struct {
	cache.SharedIndexInformer
	gvr      schema.GroupVersionResource
	source   *source.Source
	choice   *choice // the client; nil: there is only one
	errors   *errorHandlers
	handlers *handlers.Set
	listed   <-chan struct{} // closes when the informer has listed once
	resync   time.Duration   // of handlers without a period of their own

	over  func() bool                         // reports whether no factory will run it any more; nil: it has none
	guard func(cache.Indexers) cache.Indexers // nil: index functions are called as they are

	// before has the cache to read until the informer has synced: that of a stopped
	// informer that this one has taken the place of. Nil if there is none.
	before atomic.Pointer[informer]

	mu        sync.Mutex     // makes one step of setting something and making it known
	unguarded cache.Indexers // the index functions as they are, if there is a guard
}

var _ informers.GenericInformer = (*informer)(nil)

// newInformer returns client-go's shared informer on the source of cfg, whose errors go to
// report, or to the informer's own watch error handler if it is given one. The example
// object has no kind: with one the reflector would drop, with a log line only, whatever a
// server sends of another kind.
func newInformer(cfg source.Config, report errorHandler, resync time.Duration, indexers cache.Indexers, metrics *informermetrics.Relay) *informer {
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

// readFrom makes i's lister read old's cache until i has synced. A program that asks for the lister
// each time would otherwise find no objects as soon as its informer is to stop.
func (i *informer) readFrom(old *informer) { i.before.Store(old.filled()) }

// filled returns whose cache to read.
func (i *informer) filled() *informer {
	before := i.before.Load()
	if before == nil {
		return i
	}
	if closed(i.listed) {
		i.before.Store(nil) // lets go of the old cache
		return i
	}
	return before
}
