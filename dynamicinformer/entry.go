package dynamicinformer

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/informermetrics"
	"github.com/gvrkit/gvrkit/internal/typestate"
	"github.com/gvrkit/gvrkit/status"
)

// key is what an entry is found by: who asks for an equal one shares it.
type key struct {
	gvr      schema.GroupVersionResource
	versions discovery.VersionPolicy
	separate uint64 // of nobody else's; 0: shared
}

// compare orders keys by name: group, version, resource.
func (k *key) compare(other *key) int {
	return cmp.Or(
		strings.Compare(k.gvr.Group, other.gvr.Group), strings.Compare(k.gvr.Version, other.gvr.Version),
		strings.Compare(k.gvr.Resource, other.gvr.Resource),
		strings.Compare(k.versions.String(), other.versions.String()), cmp.Compare(k.separate, other.separate),
	)
}

// pinned is the separate of an entry that ForResource has made beside one whose options
// are not the factory's.
const pinned = ^uint64(0)

// entry is the life of one informer in a factory: made, started once, ended. The
// factory makes a new entry for a resource whose informer has ended.
type entry struct {
	key
	number   uint64 // of all that the factory has made
	informer *genericInformer
	state    *typestate.State
	metrics  *informermetrics.Relay // client-go's; nil: none
	changed  *broadcast.Broadcaster // broadcast when the status may have changed

	// The fields below are guarded by the factory's mu.
	settings  settings
	leases    map[*Lease]struct{}
	owners    map[string]status.Owner // of leases, by name
	pinned    bool                    // it lives until the factory ends, whoever releases what
	linger    time.Duration
	lingering *time.Timer // ends it; nil: somebody has it
	lingers   int         // times that it has lingered
	forgotten bool        // released by all, and told to end
	abandoned bool        // run by hand, and stopped

	// Set once by start; nil before.
	stop   <-chan struct{}    // closes when whoever started the informer wants its end
	cancel context.CancelFunc // ends it for the factory

	// errands are what leases have left to do with an informer that goes on, and questions
	// to its store. None begins once drained is set.
	errands sync.WaitGroup
	awaited int // the number of the last first list that the store is waited for
	drained bool

	// over closes when the informer has ended, and done when nothing of it runs any more.
	over chan struct{}
	done chan struct{}
}

// newEntry returns an entry in place of old, which may be nil.
func (f *Factory) newEntry(k key, s settings, old *entry) *entry {
	changed := &broadcast.Broadcaster{}
	e := &entry{
		key: k, number: f.made.Add(1), settings: s, changed: changed,
		leases: map[*Lease]struct{}{}, over: make(chan struct{}), done: make(chan struct{}),
	}
	e.state = typestate.New(typestate.Config{
		GVR: k.gvr, Namespace: s.namespace, Changed: changed, Completed: func() { f.awaitStore(e) }, Resolver: f.options.resolver,
		Resolve: func(ctx context.Context) (discovery.Resource, error) {
			return f.options.resolver.ValidateVersion(ctx, k.gvr, k.versions)
		},
	})
	cfg := s.config(f.clients.forOne(), k.gvr)
	cfg.Observer = e.state
	cfg.Stalls = &f.stalls
	cfg.Availability = e.state.Availability()
	cfg.WhileWaiting = e.state.AskUntilServed
	cfg.Confirm = e.state.Confirm
	cfg.Probed = e.state.Probed
	e.metrics = f.options.identities.Relay(k.gvr)
	e.informer = newInformer(cfg, e.state.LogError, s.resyncPeriod(), e.guard(s.allIndexers()), e.metrics)
	e.state.Read(e.informer.source.State, e.informer.source.Has, e.hasSynced)
	e.informer.informer.guard, e.informer.informer.unguarded = e.guard, s.allIndexers()
	if old != nil {
		e.informer.follow(old.informer)
	}
	shared := e.informer.informer
	shared.over = func() bool { return closed(e.done) || f.endsUnstarted(e) }
	// Neither can fail before the informer runs; both may be replaced until then.
	_ = shared.SetTransform(s.transform)
	if s.onError != nil {
		_ = shared.SetWatchErrorHandlerWithContext(s.onError)
	}
	return e
}

// run is the life of a started entry. The informer is not run before its type is served:
// a parked one is a goroutine, not six and a cache.
func (e *entry) run(ctx context.Context, discovered bool) {
	e.state.Log(typestate.LogOrdinary, "Informer begins", "versions", e.versions)
	defer e.state.Log(typestate.LogOrdinary, "Informer has ended")
	if !discovered {
		e.inform(ctx)
		return
	}
	var informer sync.WaitGroup
	defer informer.Wait()
	running := false
	e.state.Run(ctx, func() {
		if !running {
			running = true
			informer.Go(func() { e.inform(ctx) })
		}
	})
}

// inform runs the informer, whose type is served.
func (e *entry) inform(ctx context.Context) {
	e.metrics.Begin()
	defer e.metrics.End()
	shared := e.informer.informer
	shared.RunWithContext(ctx)
	if !shared.IsStopped() {
		// Its user runs it by hand, so that it returned at once. It is theirs to
		// end, with its requests; the entry keeps to its own time.
		<-ctx.Done()
		return
	}
	e.informer.source.Wait()
}

func (e *entry) started() bool { return e.stop != nil }

// ending reports whether the informer has ended or been told to. Someone who asks
// for the resource now gets another one. The caller holds the factory's mu.
func (e *entry) ending() bool {
	return e.abandoned || e.forgotten || e.started() && closed(e.stop) || closed(e.done)
}

func (e *entry) hasSynced() bool { return closed(e.informer.listed) }

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// holdLocked notes that l is a lease on e. The caller holds the factory's mu.
func (e *entry) holdLocked(l *Lease) {
	name := l.handlers.Name()
	e.leases[l] = struct{}{}
	o, there := e.owners[name]
	if !there {
		o = status.Owner{Name: name, Since: time.Now()}
	}
	o.Leases++
	if e.owners == nil {
		e.owners = map[string]status.Owner{}
	}
	e.owners[name] = o
}

// letGoLocked notes that l is not a lease on e any more. The caller holds the factory's mu.
func (e *entry) letGoLocked(l *Lease) {
	name := l.handlers.Name()
	delete(e.leases, l)
	o := e.owners[name]
	o.Leases--
	if o.Leases == 0 {
		delete(e.owners, name)
		return
	}
	e.owners[name] = o
}
