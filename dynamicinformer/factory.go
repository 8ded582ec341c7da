package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/attempt"
	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/follow"
	"github.com/gvrkit/gvrkit/internal/form"
	"github.com/gvrkit/gvrkit/internal/inflight"
	"github.com/gvrkit/gvrkit/internal/redirect"
	"github.com/gvrkit/gvrkit/internal/source"
)

// Factory creates informers on resources that are known by GVR, one per resource, and runs them. It is safe for concurrent use. Its methods may
// be called from event handlers, but a handler that waits for its own informer waits forever.
//
// [Factory.Acquire] returns a lease on an informer that ends with its last lease. [Factory.ForResource] returns an informer that runs until
// the factory ends. With discovery, the factory runs its resolver from Start on, and informers follow the changes of their types.
type Factory struct {
	clients form.Clients
	options options
	made    atomic.Uint64 // the number of entries so far
	singles atomic.Uint64 // the number of keys of separate informers so far
	stalls  source.Stalls
	lists   *source.ListQueue
	memory  *budget.Budget

	// started closes with Start. closing closes when no informer can be started any more. Both close under mu.
	started, closing chan struct{}
	// removals counts removals of handlers from informers that have not been started. After closing has closed, no removal begins.
	removals inflight.Counter

	// mu guards the fields below. It is never held across I/O, a channel operation or user code.
	mu       sync.Mutex
	ctx      context.Context                   //nolint:containedctx // the context of Start, for later informers; nil before Start
	unhook   func() bool                       // removes the call of close at the end of ctx
	entries  map[key]*entry                    // only putLocked and dropLocked change it
	changes  int                               // the number of changes of entries so far
	order    []*entry                          // entries, sorted, read-only; nil after a change of entries
	running  map[schema.GroupResource][]*entry // by entry.events, also entries that are no longer in entries; no value is empty
	follows  map[*follow.Follower]struct{}     // the calls of Follow in progress
	resolver resolverRunner
}

// NewForConfig returns a factory for the server of cfg. It creates discovery and a client of package dynamicclient, which share one HTTP
// client. [WithDiscovery] replaces discovery, or turns it off if its argument is nil. [WithClientOptions] configures the client. NewForConfig
// does no I/O. A redirect to another server is an error, since that server would get the credentials.
//
// After the first failed attempt, the status has the reason why an informer has not synced, also while client-go retries internally.
// Objects share equal parts, as dynamicclient.WithSharing describes, except objects of informers with a transform. Handlers must not write
// to objects: a write would change other objects too. If client-go's KUBE_CACHE_MUTATION_DETECTOR is true, objects share no parts, so that
// the detector reports the right object.
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
	return NewForConfigAndClient(cfg, httpClient, opts...)
}

// NewForConfigAndClient is NewForConfig with an HTTP client of the caller, whose CheckRedirect decides about redirects. The transport settings of cfg
// have no effect.
func NewForConfigAndClient(cfg *rest.Config, httpClient *http.Client, opts ...Option) (*Factory, error) {
	if cfg == nil || httpClient == nil {
		return nil, errors.New("dynamicinformer: the rest.Config or the HTTP client is nil")
	}
	resolver, err := discovery.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	httpClient = attempt.Client(redirect.Refuse(httpClient))
	o := newOptions(append([]Option{WithDiscovery(resolver)}, opts...)...)
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	clients, err := form.NewClients(cfg, httpClient, o.client)
	if err != nil {
		return nil, err
	}
	if o.metadata != nil {
		clients = clients.WithMetadata(o.metadata)
	}
	return newFactory(clients, o), nil
}

// New returns a factory whose informers use client. It has discovery only with the option WithDiscovery. The status has the reason of a failure only
// after the internal retries of client: client-go's client returns a 503 with Retry-After after ten seconds or more, and the error of
// a watch after eleven connections that have timed out. New does no I/O.
func New(client dynamic.Interface, opts ...Option) (*Factory, error) {
	if source.Unstructured(client) == nil {
		return nil, errors.New("dynamicinformer: the dynamic client is nil")
	}
	o := newOptions(opts...)
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("dynamicinformer: %w", err)
	}
	return newFactory(form.Clients{Own: client, Metadata: o.metadata}, o), nil
}

func newFactory(clients form.Clients, o options) *Factory {
	f := &Factory{
		clients: clients, options: o, lists: source.NewListQueue(o.lists, o.listBytes), memory: budget.New(o.memory),
		started: make(chan struct{}), closing: make(chan struct{}),
		entries: map[key]*entry{}, running: map[schema.GroupResource][]*entry{}, follows: map[*follow.Follower]struct{}{},
	}
	f.resolver = resolverRunner{resolver: o.resolver, handle: f.handle}
	return f
}

// Start runs the requested informers, and those that are requested later, until ctx ends. The end of ctx also closes the factory, as Shutdown
// does, but without waiting. It does not end informers that [Factory.DropIn] has started. Start returns at once. Only the first call has an
// effect, and only if the factory has not been closed. A nil ctx never ends.
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
	f.resolver.start(ctx, len(f.entries))
	close(f.started)
	f.mu.Unlock()
	f.startAll(ctx, func(*entry) bool { return true })
}

// ForResource returns the shared informer for gvr, creating it on first use. Calls with an equal gvr return the same informer. If that
// informer has been stopped, they return a new one, whose lister reads the old cache until the new informer has synced. ForResource does no I/O. The
// informer runs when the factory has been started, until the factory ends. An informer that is first requested after the end of the
// factory never runs. Leases share the informer if they have the factory's options.
//
// With discovery, no list or watch is sent before the resource has been resolved and validated. Until then the informer waits, and
// [Factory.WaitForSync] returns the reason.
func (f *Factory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	e := f.forResource(gvr, f.options.form)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx != nil {
		f.startLocked(f.ctx, e)
	}
	return e.informer
}

// forResource is ForResource without the start, in any form.
func (f *Factory) forResource(gvr schema.GroupVersionResource, as form.Form) *entry {
	for {
		e, fresh := f.pin(gvr, as)
		// A user may have run the informer without the factory, and stopped it. IsStopped is
		// called without f.mu, since the informer's own lock may be held for some time.
		if fresh || !e.informer.IsStopped() || !f.replace(e, nil) {
			_ = f.index(e, f.options.indexers) // a lease with other indexers may have created it; an informer that has ended has an error
			return e
		}
	}
}

// pin returns the entry of gvr and that form with the factory's options, and keeps it until the factory ends. If
// there is none, or if the entry is ending, it creates one.
func (f *Factory) pin(gvr schema.GroupVersionResource, as form.Form) (e *entry, fresh bool) {
	var made, replaced *entry
	for {
		k, s := key{gvr: gvr, form: as}, f.options.settings
		s.packed = s.packed && as == form.Form(form.Unstructured{}) // other forms ignore it
		f.mu.Lock()
		old := f.ofForResourceLocked(k)
		if old != nil {
			k.separate = ofForResource
		} else if old = f.entries[k]; old != nil && !old.pinned && conflict(&old.settings, &s) != nil {
			k.separate, old = ofForResource, nil
		}
		// A factory that is closing keeps the old entry: a new informer could not run, and the old cache can still be read.
		if old != nil && (!old.ending() || closed(f.closing)) {
			e = old
		} else if made != nil && made.key == k && replaced == old {
			e = made
			f.putLocked(e)
		}
		if e != nil {
			e.pin()
		}
		f.mu.Unlock()
		if e != nil {
			return e, e == made
		}
		made, replaced = f.newEntry(k, s, old), old // asks the client: not under f.mu
	}
}

// Resolver returns the factory's discovery, or nil without discovery. The factory runs it from Start on. While the informers have been on at most
// four types, the resolver requests only these types.
func (f *Factory) Resolver() *discovery.Resolver { return f.options.resolver }

// Client returns the dynamic client of the factory, for other requests of the program. It is the client that was given to New, or a client with
// the connection and the rate limit of the informers. Its objects belong to the caller and share no parts with cached objects;
// [WithClientOptions] can leave fields out of them.
func (f *Factory) Client() dynamic.Interface { return f.clients.Own }
