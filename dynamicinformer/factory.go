package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/attempt"
	"github.com/gvrkit/gvrkit/internal/inflight"
	"github.com/gvrkit/gvrkit/internal/source"
)

// Factory makes informers on resources known by GVR, one a resource, and runs
// them. It is safe for concurrent use. Its methods may be called from event
// handlers, but a handler that waits for its own informer waits for itself.
//
// [Factory.Acquire] returns a lease on an informer, which ends with its last lease;
// [Factory.ForResource] returns an informer that lives as long as the factory. With discovery the
// factory runs its resolver from Start on, and informers follow what becomes of their types.
type Factory struct {
	clients clients
	options options
	made    atomic.Uint64 // entries so far
	singles atomic.Uint64 // keys of separate informers so far
	stalls  source.Stalls

	// started closes with Start, and closing when nothing can be started any more. Both close
	// under mu.
	started, closing chan struct{}
	// removals counts removals of handlers from informers that have not been started. None begins
	// any more once closing is closed.
	removals inflight.Counter

	// mu guards the fields below. It is never held across I/O, a channel
	// operation or user code.
	mu       sync.Mutex
	ctx      context.Context                   //nolint:containedctx // what Start was given, for informers that come later; nil before
	unhook   func() bool                       // ends the wait for the end of ctx
	entries  map[key]*entry                    // changed by putLocked and dropLocked only
	changes  int                               // of entries, so far
	order    []*entry                          // entries, sorted; nil: they have changed since. It is never written to
	running  map[schema.GroupResource][]*entry // also those that entries no longer has; without empty ones
	resolver resolverRunner
}

// NewForConfig returns a factory for the server that cfg reaches, with discovery and
// a client of dynamicclient of its own, which share one HTTP client. Options can
// replace discovery, or turn it off with WithDiscovery(nil), and change how the
// client decodes, with WithClientOptions. It does no I/O.
//
// Reasons for not syncing appear with the first attempt that fails, also while client-go
// still tries again by itself.
//
// Objects share equal parts, as dynamicclient.WithSharing describes, except those of informers
// with a transform. A handler that writes to an object, which it must not, damages
// others with it. While client-go's KUBE_CACHE_MUTATION_DETECTOR is set to true,
// nothing is shared, so that it finds the one that was written to.
func NewForConfig(cfg *rest.Config, opts ...Option) (*Factory, error) {
	if cfg == nil {
		return nil, errors.New("dynamicinformer: the rest.Config is nil")
	}
	cfg = rest.CopyConfig(cfg)
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	resolver, err := discovery.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	httpClient = attempt.Client(httpClient)
	o := newOptions(append([]Option{WithDiscovery(resolver)}, opts...)...)
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	clients, err := newClients(cfg, httpClient, o.client)
	if err != nil {
		return nil, err
	}
	return newFactory(clients, o), nil
}

// New returns a factory whose informers use client. It has no discovery unless
// WithDiscovery gives it one. Reasons for not syncing appear after the retries
// that client makes by itself: client-go's takes ten seconds and more to let a
// 503 with Retry-After through. It does no I/O.
func New(client dynamic.Interface, opts ...Option) (*Factory, error) {
	if orNil(client) == nil {
		return nil, errors.New("dynamicinformer: the dynamic client is nil")
	}
	o := newOptions(opts...)
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	return newFactory(clients{own: client}, o), nil
}

func newFactory(clients clients, o options) *Factory {
	f := &Factory{
		clients: clients, options: o,
		started: make(chan struct{}), closing: make(chan struct{}),
		entries: map[key]*entry{}, running: map[schema.GroupResource][]*entry{},
	}
	f.resolver = resolverRunner{resolver: o.resolver, handle: f.handle}
	return f
}

// Start runs the informers asked for so far and, from then on, each at the moment
// it is asked for. They run until ctx ends, which also closes the factory, as
// Shutdown does but without waiting. Start returns at once; calls after the first
// have no effect, nor has one after the factory was closed. A ctx that is nil never ends.
func (f *Factory) Start(ctx context.Context) { //nolint:contextcheck // without one, none is inherited
	if ctx == nil {
		ctx = wait.ContextForChannel(nil)
	}
	f.mu.Lock()
	if f.ctx != nil || closed(f.closing) {
		f.mu.Unlock()
		return
	}
	f.ctx = ctx
	f.unhook = context.AfterFunc(ctx, f.close)
	f.resolver.start(ctx)
	close(f.started)
	f.mu.Unlock()
	f.startAll(ctx, func(*entry) bool { return true })
}

// startAll starts, on ctx, every informer that has not been started and is wanted.
func (f *Factory) startAll(ctx context.Context, wanted func(e *entry) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		if wanted(e) {
			f.startLocked(ctx, e)
		}
	}
}

// startLocked runs e, if it waits, in a goroutine that drain waits for. The caller holds f.mu.
// No entry waits once the factory is closing, so that drain, which comes after, knows all that will
// ever run.
func (f *Factory) startLocked(ctx context.Context, e *entry) {
	if e.phase != waiting {
		return
	}
	f.resolver.start(ctx)
	own := e.startLocked(ctx)
	gr := e.gvr.GroupResource()
	f.running[gr] = append(f.running[gr], e)
	begun := f.resolver.begun()
	go func() {
		f.awaitResolver(own, begun)
		e.run(own, f.options.resolver != nil)
		e.pending.Close()
		<-e.pending.Done()
		f.ended(e)
	}()
}

// awaitResolver waits until begun closes, which is what resolverRunner.begun has returned: the
// resolver then knows what a question would otherwise ask the server for.
func (f *Factory) awaitResolver(ctx context.Context, begun <-chan struct{}) {
	if begun == nil {
		return
	}
	select {
	case <-begun:
	case <-f.closing:
	case <-ctx.Done():
	}
}

// ended is the last thing that e's goroutine does.
func (f *Factory) ended(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gr := e.gvr.GroupResource()
	f.running[gr] = slices.DeleteFunc(f.running[gr], func(other *entry) bool { return other == e })
	if len(f.running[gr]) == 0 {
		delete(f.running, gr)
	}
	f.stopResolverLocked()
	e.endLocked()
}

// stopResolverLocked stops the resolver if no informer runs, and none is about to. The caller holds
// f.mu.
func (f *Factory) stopResolverLocked() {
	if len(f.running) == 0 && (f.ctx == nil || closed(f.closing)) {
		f.resolver.stop()
	}
}

// handle passes an event of the resolver to the informers on its type.
func (f *Factory) handle(event discovery.Event) {
	f.mu.Lock()
	entries := slices.Clone(f.running[event.Resource.GVR.GroupResource()])
	f.mu.Unlock()
	for _, e := range entries {
		e.state.Heard(event)
	}
}

// ForResource returns the shared informer for gvr, creating it on first use.
// Calls with an equal gvr return the same informer, unless it has been stopped in
// the meantime: then a fresh one, which takes handlers where the old one would not,
// and whose lister reads the old cache until it has synced. It does no I/O. The
// informer runs once the factory has been started, and lives until the factory ends;
// one asked for first after that never runs. It is shared with leases whose options
// are the factory's.
//
// With discovery, no list or watch leaves before the resource has been resolved
// and validated; until then the informer is parked, and [Factory.WaitForSync]
// says why.
func (f *Factory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	e := f.forResource(gvr)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx != nil {
		f.startLocked(f.ctx, e)
	}
	return e.informer
}

// Resolver returns the factory's discovery; nil without discovery. The factory runs it from
// Start on, and its status says how often the factory has asked.
func (f *Factory) Resolver() *discovery.Resolver { return f.options.resolver }

// Client returns the dynamic client of the factory, for requests of the program's own: the one that
// New was given, or one that has the connection and the rate limit of the informers. Objects that it
// returns belong to the caller and have no parts in common with cached objects; [WithClientOptions]
// can leave fields out of them.
func (f *Factory) Client() dynamic.Interface { return f.clients.own }
