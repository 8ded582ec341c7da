package dynamicinformer

import (
	"context"
	"fmt"
	"sync"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/inflight"
	"github.com/gvrkit/gvrkit/internal/informer"
	"github.com/gvrkit/gvrkit/internal/informermetrics"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typestate"
	"github.com/gvrkit/gvrkit/status"
)

// phase is the phase of an entry. It only increases. Only startLocked, retireLocked and endLocked change it.
type phase int

const (
	waiting phase = iota // the entry waits for the start of the factory
	running              // the entry has been started
	retired              // the entry must end
	ended                // no goroutine of the entry runs
)

// entry is one informer of a factory. A new entry is waiting. Start makes it running. The release of its last lease, the end of Start's context,
// or the stop of an informer that a user runs without the factory makes it retired. When all its goroutines have ended, it is ended. An entry
// that was never running is not retired before it is ended. When the resource is requested later, another entry replaces it.
type entry struct {
	key
	number   uint64 // a serial number in the factory
	informer *informer.Informer
	state    *typestate.State
	metrics  *informermetrics.Relay // client-go's; nil: none
	changed  *broadcast.Broadcaster // broadcast when the status may have changed

	// pending counts the operations that must end before the entry has ended, besides the informer's run: the removal of handlers, and waits for its store.
	pending inflight.Counter

	done chan struct{} // closes when the entry has ended

	// The fields below are guarded by the factory's mu.
	users
	settings settings
	adding   map[string]chan struct{} // closes when a lease has added the index with that name, or could not
	phase    phase                    // read by phaseLocked
	stop     <-chan struct{}          // closes when the context of Start ends; nil before the start
	cancel   context.CancelFunc       // ends the goroutines of the entry; nil before the start
}

// started reports whether the entry has ever been running. The caller holds the factory's mu.
func (e *entry) started() bool { return e.stop != nil }

// phaseLocked returns the phase. A running entry is retired as soon as the context of Start has ended. The caller holds the factory's mu.
func (e *entry) phaseLocked() phase {
	if e.phase == running && closed(e.stop) {
		e.retireLocked()
	}
	return e.phase
}

// ending reports whether the entry has ended or must end. Such an entry gets no new users. The caller holds the factory's mu.
func (e *entry) ending() bool { return e.phaseLocked() >= retired }

// notRunningLocked returns why the entry does not run, or "". The caller holds the factory's mu.
func (e *entry) notRunningLocked() status.Reason {
	switch e.phaseLocked() {
	case waiting:
		return status.ReasonNotStarted
	case retired, ended:
		return status.ReasonStopped
	}
	return ""
}

// startLocked makes a waiting entry running, and returns the context for its run. The caller holds the factory's mu.
func (e *entry) startLocked(ctx context.Context) context.Context {
	e.phase = running
	e.stop = ctx.Done()
	if e.stop == nil { // a context that never ends
		e.stop = make(chan struct{})
	}
	e.state.Begin(ctx)
	ctx, e.cancel = context.WithCancel(ctx)
	e.changed.Broadcast()
	return ctx
}

// retireLocked makes the entry end. The caller holds the factory's mu.
func (e *entry) retireLocked() {
	switch e.phase {
	case waiting:
		e.endLocked()
	case running:
		e.phase = retired
		e.cancel()
		e.informer.Source().Leave() // handlers may still run
		e.changed.Broadcast()
	}
}

// endLocked makes the entry ended, after its goroutines have ended: no handler of a lease is called
// any more. It may be called again. The caller holds the factory's mu.
func (e *entry) endLocked() {
	if e.phase == ended {
		return
	}
	e.phase = ended
	e.stopLinger()
	e.pending.Close()
	for l := range e.leases {
		l.handlers.Close()
	}
	close(e.done)
	e.changed.Broadcast()
}

// newEntry returns an entry that replaces old, which may be nil.
func (f *Factory) newEntry(k key, s settings, old *entry) *entry {
	changed, verbs := &broadcast.Broadcaster{}, s.verbs()
	s.indexers = s.allIndexers() // users with another index by namespace conflict
	e := &entry{
		key: k, number: f.made.Add(1), settings: s, changed: changed,
		done: make(chan struct{}), adding: map[string]chan struct{}{},
	}
	e.state = typestate.New(k.gvr, typestate.Config{
		Named: k.ref != "", Namespace: s.namespace, Changed: changed, Completed: e.awaitStore, Resolver: f.options.resolver,
		Resolve: func(ctx context.Context) (discovery.Resource, error) { return f.resolveOrKeep(ctx, e, verbs) },
	})
	client, err := f.clients.For(k.form, f.options.packing(s.packed))
	cfg := s.config(client.Client, f.clients.ForNamespaces(k.form, client.Client), k.gvr)
	if err != nil {
		cfg.Invalid = fmt.Errorf("%w: %w", source.ErrInvalid, err)
	}
	cfg.Observer = e.state
	cfg.Stalls, cfg.Queue, cfg.Budget = &f.stalls, f.lists, f.memory
	cfg.Availability = e.state.Availability()
	cfg.WhileWaiting = e.state.AskUntilServed
	cfg.Confirm = e.state.Confirm
	cfg.Probed = e.state.Probed
	e.metrics = f.options.identities.Relay(k.gvr)
	e.informer = informer.New(informer.Config{
		Source: cfg, LogError: e.state.LogError, LogPanic: e.state.LogPanic, Resync: s.resyncPeriod(), Indexers: s.indexers, Unindexed: e.state,
		Shard: s.shard, Refuse: func() error { return f.refuse(e) }, Lister: k.form.Lister, Transformed: client.Transformed, Packer: client.Packer, Packs: client.Packs, Metrics: e.metrics,
	})
	e.state.SetSource(e.informer.Source(), e.hasSynced)
	if old != nil {
		e.informer.ReadFrom(old.informer)
	}
	// These calls can't fail before the informer runs. Users may set other values until then.
	_ = e.informer.SetTransform(s.transform)
	_ = e.informer.SetErrorHandler(s.onError)
	return e
}

// run runs the entry. It does not run the informer before its type is served: until then the entry has one goroutine instead of six goroutines and a cache.
func (e *entry) run(ctx context.Context, discovered bool) {
	e.state.Log(typestate.LogOrdinary, "Informer begins", "versions", e.versions)
	defer e.state.Log(typestate.LogOrdinary, "Informer has ended")
	if !discovered {
		e.inform(ctx)
		return
	}
	var informing sync.WaitGroup
	defer informing.Wait()
	begun := false
	e.state.Run(ctx, func() {
		if !begun {
			begun = true
			informing.Go(func() { e.inform(ctx) })
		}
	})
}

// inform runs the informer. Its type is served.
func (e *entry) inform(ctx context.Context) {
	e.metrics.Begin()
	defer e.metrics.End()
	e.informer.RunWithContext(ctx)
	if !e.informer.IsStopped() {
		// A user runs the informer without the factory, so that RunWithContext has returned at
		// once. The user ends the informer and its requests; the entry ends with ctx.
		<-ctx.Done()
		return
	}
	e.informer.Source().Wait()
}

func (e *entry) hasSynced() bool { return closed(e.informer.Listed()) }

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
