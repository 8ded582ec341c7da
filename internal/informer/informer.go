package informer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/internal/handlers"
	"github.com/gvrkit/gvrkit/internal/informermetrics"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/packed"
	"github.com/gvrkit/gvrkit/sharding"
)

// Config configures an Informer.
type Config struct {
	// Source configures the source. New sets Report, MarkMoved, Packing, Shard, Group and Loaded.
	Source source.Config
	// LogError gets each error of a list or watch that will be retried, unless a user has set a watch
	// error handler.
	LogError func(ctx context.Context, err error)
	// Begin, if not nil, is called with the context of RunWithContext when the informer begins to run.
	Begin func(ctx context.Context)
	// LogPanic gets each recovered panic of an event handler. It may be nil.
	LogPanic handlers.LogPanic
	// Resync is the period of handlers without a period of their own.
	Resync time.Duration
	// Indexers are the first indexers, and read-only.
	Indexers cache.Indexers
	// Unindexed, if not nil, gets the failures of index functions. With nil, a failure panics, as in client-go.
	Unindexed Unindexed
	// Refuse, if not nil, returns why a handler can't be added to an informer that has never run.
	Refuse func() error
	// Lister returns a lister on the informer's objects in an indexer.
	Lister func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister
	// Transformed is set while the informer has a transform, which may write to objects. It may be nil.
	Transformed *atomic.Bool
	// Packer, if not nil, packs the objects of the cache. Then objects are unstructured outside of it. If Packs is not nil, it packs only
	// while Packs is true: the informer sets it if its cache does not fit into Source.Budget otherwise.
	Packer *packed.Packer
	Packs  *atomic.Bool
	// Shard, if not nil, limits the informer to its objects.
	Shard sharding.Shard
	// Metrics are client-go's metrics of the informer; nil: none.
	Metrics *informermetrics.Relay
}

// Informer is client-go's shared informer on one resource, with its source and its lister. The methods that replace client-go's also
// inform other parts: the client whether there is a transform, the source which handler gets errors, and the status about handlers' calls.
type Informer struct {
	cache.SharedIndexInformer
	gvr         schema.GroupVersionResource
	source      *source.Source
	errors      *errorHandlers
	handlers    *handlers.Set
	listed      <-chan struct{} // closes when the informer has listed once
	resync      time.Duration   // of handlers without a period of their own
	lister      func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister
	refuse      func() error
	transformed *atomic.Bool
	unindexed   Unindexed // nil: index functions are called directly
	packing     *packing  // nil: the cache has what the source returns
	ownership   *ownership
	begin       func(ctx context.Context)
	ran         atomic.Bool

	// before is the stopped informer that this one replaces: its cache is read until this
	// informer has synced. Nil if there is none.
	before atomic.Pointer[Informer]

	awaited atomic.Int64 // the number of the last first list that a goroutine awaits in the store

	mu        sync.Mutex     // guards the fields below, and makes a setting and the report of it one step
	unguarded cache.Indexers // the original index functions
	shortest  time.Duration  // the shortest resync period of the informer and of handlers added before it ran
}

var _ informers.GenericInformer = (*Informer)(nil)

// New returns an informer that does not run. It sends no request. The example object of client-go's
// informer is nil: with a kind, the reflector would drop objects of another kind and only log them.
func New(cfg Config) *Informer {
	gvr := cfg.Source.GVR
	if cfg.Indexers == nil { // AddIndexers adds to a clone of the map
		cfg.Indexers = cache.Indexers{}
	}
	errorHandlers := &errorHandlers{usual: cfg.LogError, resource: gvr.String(), streams: func() bool {
		return features.FeatureGates().Enabled(features.WatchListClient) && !cfg.Source.Client.IsWatchListSemanticsUnSupported()
	}}
	cfg.Source.Report, cfg.Source.MarkMoved = errorHandlers.call, true
	packing := newPacking(cfg.Packer, cfg.Packs, gvr)
	if packing != nil {
		cfg.Source.Packing = packing
	}
	ownership := newOwnership(cfg.Shard, gvr, &cfg.Source)
	s := source.New(cfg.Source)
	lw := s.ListerWatcher()
	if cfg.Transformed == nil {
		cfg.Transformed = &atomic.Bool{}
	}
	i := &Informer{
		gvr: gvr, source: s, errors: errorHandlers, resync: cfg.Resync, shortest: cfg.Resync, lister: cfg.Lister, begin: cfg.Begin, refuse: cfg.Refuse, transformed: cfg.Transformed,
		unindexed: cfg.Unindexed, unguarded: cfg.Indexers, packing: packing, ownership: ownership,
	}
	i.lister = i.whole(cfg.Lister)
	opts := cache.SharedIndexInformerOptions{
		Indexers:          i.guard(cfg.Indexers),
		ObjectDescription: gvr.String(),
	}
	cfg.Metrics.Identify(&opts)
	i.SharedIndexInformer = cache.NewSharedIndexInformerWithOptions(lw, nil, opts)
	_ = i.SharedIndexInformer.SetWatchErrorHandlerWithContext(untilEnd(cache.DefaultWatchErrorHandler)) // an error means that it runs
	indexer := i.SharedIndexInformer.GetIndexer()
	s.LookUp(func(key string) (any, bool) {
		item, there, err := indexer.GetByKey(key)
		return item, there && err == nil
	})
	errorHandlers.idleReflector = idleReflector(lw, gvr)
	i.handlers, i.listed = handlers.NewSet(i.SharedIndexInformer, s, cfg.LogPanic), i.SharedIndexInformer.HasSyncedChecker().Done()
	i.handlers.Moved, i.handlers.Name = source.Moved, "SharedIndexInformer "+gvr.String()
	ownership.guard(i.handlers)
	if packing != nil {
		packing.stored, packing.synced, packing.resize = indexer.List, i.HasSynced, s.Resize
		i.handlers.Unpack, i.handlers.UnpackLike, i.handlers.Pack = packing.unpacked, packing.unpackedLike, packing.Pack
	}
	return i
}

// Run implements cache.SharedInformer.
func (i *Informer) Run(stopCh <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext implements cache.SharedInformer. It also runs the goroutines of event handlers. A second call has no effect.
func (i *Informer) RunWithContext(ctx context.Context) {
	if i.ran.Swap(true) {
		klog.FromContext(ctx).Info("Warning: the informer has started, run more than once is not allowed")
		return
	}
	if i.begin != nil {
		i.begin(ctx)
	}
	running, stop := i.handlers.Start(ctx)
	defer stop()
	defer i.release(ctx)()
	defer i.packing.run(ctx)()
	defer i.ownership.run(ctx)()
	i.SharedIndexInformer.RunWithContext(running)
	i.source.Leave()
	i.handlers.Wait()
}

// Source returns the informer's source.
func (i *Informer) Source() *source.Source { return i.source }

// Handlers returns the informer's event handlers.
func (i *Informer) Handlers() *handlers.Set { return i.handlers }

// Listed returns a channel that closes when the informer has listed once.
func (i *Informer) Listed() <-chan struct{} { return i.listed }

// Informer returns the shared informer.
func (i *Informer) Informer() cache.SharedIndexInformer { return i }
