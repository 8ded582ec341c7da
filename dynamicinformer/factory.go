package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// Factory makes informers on resources known by GVR, one a resource, and runs
// them. It is safe for concurrent use. Its methods may be called from event
// handlers, but a handler that waits for its own informer waits for itself.
//
// [Factory.Acquire] gives a share in an informer that ends when nobody has one any more,
// [Factory.ForResource] an informer for as long as the factory lasts. With discovery the
// factory runs its resolver while informers run, and follows what becomes of their types.
type Factory struct {
	clients clients
	options options
	made    atomic.Uint64 // entries so far
	singles atomic.Uint64 // those of them that nobody shares
	stalls  source.Stalls

	// mu guards the fields below. It is never held across I/O, a channel
	// operation or user code.
	mu      sync.Mutex
	entries map[key]*entry                    // changed by putLocked and dropLocked only
	changes int                               // of entries, so far
	order   []*entry                          // entries, sorted; nil: as of a change before. Nobody writes to it
	running map[*entry]struct{}               // also those that entries no longer has
	types   map[schema.GroupResource][]*entry // of those that run
	life    context.Context                   //nolint:containedctx // what Start was given, for informers that come later
	begun   broadcast.Broadcaster             // broadcast by Start
	unhook  func() bool                       // ends the watch on life
	closing chan struct{}                     // closed when nothing can be started any more

	attendance *attendance
	dismissed  []<-chan struct{} // of attendances that are about to end
	strays     []<-chan struct{} // of errands to informers that have not been started; none begins any more once closing
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
	return &Factory{
		clients: clients,
		options: o,
		entries: map[key]*entry{},
		running: map[*entry]struct{}{},
		types:   map[schema.GroupResource][]*entry{},
		closing: make(chan struct{}),
	}
}

// Start runs the informers asked for so far and, from then on, each at the moment
// it is asked for. They run until ctx ends, which also closes the factory, as
// Shutdown does but without waiting. Start returns at once; calls after the first
// have no effect, nor has one after the factory was closed. A ctx that is nil never ends.
func (f *Factory) Start(ctx context.Context) {
	if ctx == nil {
		ctx = wait.ContextForChannel(nil)
	}
	f.mu.Lock()
	if f.life != nil || closed(f.closing) {
		f.mu.Unlock()
		return
	}
	f.life = ctx
	f.unhook = context.AfterFunc(ctx, f.close)
	f.mu.Unlock()
	f.begun.Broadcast()
	f.run(ctx, func(*entry) bool { return true })
}

// run starts, on ctx, every informer that has not been started and is wanted.
func (f *Factory) run(ctx context.Context, wanted func(e *entry) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		if wanted(e) {
			f.startLocked(ctx, e)
		}
	}
}

// startLocked runs e once, in a goroutine that drain waits for. The caller holds
// f.mu. Nothing is started once the factory is closing, so that drain, which comes
// after, knows all there will ever be.
func (f *Factory) startLocked(ctx context.Context, e *entry) {
	if closed(f.closing) || e.started() {
		return
	}
	e.stop = ctx.Done()
	if e.stop == nil { // a context that never ends
		e.stop = make(chan struct{})
	}
	e.state.Begin(ctx)
	f.attendLocked(ctx)
	ctx, e.cancel = context.WithCancel(ctx)
	f.running[e] = struct{}{}
	gr := e.gvr.GroupResource()
	f.types[gr] = append(f.types[gr], e)
	e.changed.Broadcast()
	go func() {
		defer f.ended(e)
		defer e.cancel()
		e.run(ctx, f.options.resolver != nil)
	}()
}

// ended is the last thing that e's goroutine does.
func (f *Factory) ended(e *entry) {
	f.mu.Lock()
	e.drained = true
	close(e.over)
	leases := slices.Collect(maps.Keys(e.leases))
	f.mu.Unlock()
	e.errands.Wait()
	for _, l := range leases {
		l.handlers.Close() // nothing is left that could call
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer e.changed.Broadcast()
	defer close(e.done)
	delete(f.running, e)
	gr := e.gvr.GroupResource()
	f.types[gr] = slices.DeleteFunc(f.types[gr], func(other *entry) bool { return other == e })
	if len(f.types[gr]) == 0 {
		delete(f.types, gr)
	}
	f.dismissLocked()
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
	if f.life != nil {
		f.startLocked(f.life, e)
	}
	return e.informer
}

// forResource is ForResource without the start.
func (f *Factory) forResource(gvr schema.GroupVersionResource) *entry {
	for {
		e, fresh := f.pin(gvr)
		// Its user may have run it by hand, and stopped it. The informer is asked
		// without f.mu: its own lock may be held for a while.
		if fresh || !e.informer.informer.IsStopped() || !f.replace(e) {
			return e
		}
	}
}

// Resolver returns the factory's discovery; nil without discovery. The factory runs it while its
// informers run, and its status says how often the factory has asked.
func (f *Factory) Resolver() *discovery.Resolver { return f.options.resolver }

// Client returns the dynamic client of the factory, for requests of the program's own: the one that
// New was given, or one that has the connection and the rate limit of the informers. Objects that it
// returns belong to the caller and have no parts in common with cached objects; [WithClientOptions]
// can leave fields out of them.
func (f *Factory) Client() dynamic.Interface { return f.clients.own }

// pin returns the entry of gvr that has the factory's options, a fresh one if there is
// none or if the one there is has been told to end, and keeps it until the factory ends.
func (f *Factory) pin(gvr schema.GroupVersionResource) (e *entry, fresh bool) {
	k, s := key{gvr: gvr}, f.options.settings
	f.mu.Lock()
	old := f.entries[key{gvr: gvr, separate: pinned}]
	if old != nil {
		k.separate = pinned
	} else if old = f.entries[k]; old != nil && !old.pinned && conflict(gvr, &old.settings, &s) != nil {
		k.separate, old = pinned, nil
	}
	keep := old != nil && !f.replaceableLocked(old)
	if keep {
		f.pinLocked(old)
	}
	f.mu.Unlock()
	if keep {
		return old, false
	}
	made := f.newEntry(k, s, old) // asks the client: not under f.mu
	f.mu.Lock()
	defer f.mu.Unlock()
	if there := f.entries[k]; there != old && there != nil {
		f.pinLocked(there)
		return there, false // somebody else was quicker
	}
	f.putLocked(made)
	f.pinLocked(made)
	return made, true
}

// pinLocked makes e live until the factory ends. The caller holds f.mu.
func (f *Factory) pinLocked(e *entry) {
	e.pinned = true
	e.stopLingerLocked()
}

// replaceableLocked reports whether e's resource gets a fresh informer when it is
// asked for. A factory that is closing keeps what it has: a fresh informer could
// not run any more, and the cache of the old one can still be read.
func (f *Factory) replaceableLocked(e *entry) bool {
	return e.ending() && !closed(f.closing)
}

// replace marks e as one that is not to be handed out again, and reports whether it
// may be.
func (f *Factory) replace(e *entry) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.abandoned = true
	return f.replaceableLocked(e)
}

// known returns the entries of gvrs, or all sorted by name, and an error for each
// that nobody has asked for.
func (f *Factory) known(gvrs []schema.GroupVersionResource) (entries []*entry, unknown []error) {
	all := f.all()
	if len(gvrs) == 0 {
		return all, nil
	}
	byGVR := make(map[schema.GroupVersionResource][]*entry, len(all))
	for _, e := range all {
		byGVR[e.gvr] = append(byGVR[e.gvr], e)
	}
	for _, gvr := range gvrs {
		if byGVR[gvr] == nil {
			unknown = append(unknown, &status.NotSyncedError{GVR: gvr, Namespace: f.options.namespace, Reason: status.ReasonNotStarted})
		}
		entries = append(entries, byGVR[gvr]...)
	}
	return entries, unknown
}

// putLocked makes e the one of its key. The caller holds f.mu.
func (f *Factory) putLocked(e *entry) {
	f.entries[e.key] = e
	f.changes++
	f.order = nil
}

// dropLocked forgets e, unless another one is in its place. The caller holds f.mu.
func (f *Factory) dropLocked(e *entry) {
	if f.entries[e.key] == e {
		delete(f.entries, e.key)
		f.changes++
		f.order = nil
	}
}

// all returns all entries, sorted, to read only.
func (f *Factory) all() []*entry {
	f.mu.Lock()
	all, changes := f.order, f.changes
	if all != nil {
		f.mu.Unlock()
		return all
	}
	all = slices.AppendSeq(make([]*entry, 0, len(f.entries)), maps.Values(f.entries))
	f.mu.Unlock()
	sorted(all) // not under f.mu: there may be thousands
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changes == changes {
		f.order = all
	}
	return all
}

// versionsOf returns the entries on gr, in whatever version, sorted.
func (f *Factory) versionsOf(gr schema.GroupResource) (entries []*entry) {
	f.mu.Lock()
	for k, e := range f.entries {
		if k.gvr.Resource == gr.Resource && k.gvr.Group == gr.Group {
			entries = append(entries, e)
		}
	}
	f.mu.Unlock()
	return sorted(entries)
}

func sorted(entries []*entry) []*entry {
	slices.SortFunc(entries, func(a, b *entry) int { return a.compare(&b.key) })
	return entries
}
