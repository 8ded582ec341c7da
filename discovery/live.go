package discovery

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// pace is how often a running resolver asks for documents. Where it watches, it is told.
type pace struct {
	// awaited: something is awaited that no watch tells of.
	awaited time.Duration
	// patient: it has been awaited for so long that polled is often enough.
	patient time.Duration
	// polled: a watch is not allowed.
	polled time.Duration
	// settled: everything is watched. What is behind an APIService may change without
	// any object changing.
	settled time.Duration
	// crowded is how much slower a server is polled that has no aggregated discovery
	// and answers each group version by itself.
	crowded time.Duration // a factor
	// doubted is how long what a document no longer lists is taken to be served.
	doubted time.Duration
	// gap is how long at least it is between two requests, whatever happens.
	gap time.Duration
	// first is how long the watches may take at the beginning before the documents
	// alone have to do.
	first time.Duration
}

var usualPace = pace{
	awaited: 2 * time.Second,
	polled:  10 * time.Second,
	settled: time.Minute,
	crowded: 6,
	doubted: doubtFor,
	patient: time.Minute,
	gap:     500 * time.Millisecond,
	first:   30 * time.Second,
}

// ErrRunning is what Run returns for a resolver that runs already.
var ErrRunning = errors.New("discovery: the resolver runs already")

// Run keeps the resolver up to date until ctx ends, and then returns nil. While it
// runs, questions are answered from memory, [Resolver.Subscribe] tells of changes, and
// that a type is not served is known until the next change.
//
// It watches CustomResourceDefinitions and APIServices, and asks for the discovery
// documents when these say that something has changed, and once a minute. Where it may
// not watch one of them, it asks for the documents every 10 s, every 2 s while somebody
// awaits a type: a type that is deleted and created again between two answers is then
// not noticed as another. A server that has none of the two has none. Of a CRD, what
// concerns its type is kept and never its schemas. [Resolver.Status] says how it goes,
// and the logger in ctx is told when that changes.
//
// The permissions that it can use are list and watch on
// customresourcedefinitions.apiextensions.k8s.io and
// apiservices.apiregistration.k8s.io. It returns an error if the resolver runs already.
// It can be run again after it has returned. A resolver that was made with
// [NewFromDiscovery] has no watches, and asks.
func (r *Resolver) Run(ctx context.Context) error {
	l := &live{
		resolver: r,
		pace:     r.options.pace,
		kick:     make(chan struct{}, 1),
		heard:    make(chan struct{}, 2),
		known:    knowledge{doubtFor: r.options.pace.doubted},
		logger:   klog.FromContext(ctx).WithName("discovery"),
	}
	if err := r.begin(l); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer r.end()
	defer wg.Wait()
	if rest, ok := r.server.(*restServer); ok {
		crds := feedOf(l, rest.endpoint, l.crdSource())
		apis := feedOf(l, rest.endpoint, l.apiSource())
		wg.Go(func() { crds.run(ctx) })
		wg.Go(func() { apis.run(ctx) })
		l.await(ctx, 2)
	}
	r.open(l)
	l.poll(ctx)
	return nil
}

// live is one run of a resolver.
type live struct {
	resolver *Resolver
	pace     pace
	logger   klog.Logger
	kick     chan struct{} // has one if documents are to be asked for now
	heard    chan struct{} // one from each feed, once it has something to say

	// Guarded by the resolver's lock, as the rest is.
	known    knowledge
	crds     SourceStatus
	apis     SourceStatus
	docs     SourceStatus
	restless time.Time // since when the documents are expected to change
	tried    bool      // documents have been asked for
	open     bool      // the watches have said something, or have had the time to
}

// await waits until each feed has said something, for a while.
func (l *live) await(ctx context.Context, feeds int) {
	timer := time.NewTimer(l.pace.first)
	defer timer.Stop()
	for range feeds {
		select {
		case <-l.heard:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// poll asks for documents until ctx ends, as often as needed.
func (l *live) poll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
		case <-timer.C:
		}
		select {
		case <-l.kick: // what it is for is asked for now
		default:
		}
		if _, err := l.resolver.refresh(ctx); err != nil {
			failures++
		} else {
			failures = 0
		}
		l.resolver.mu.Lock()
		if !l.tried { // and whoever waits for it sees what there is
			l.tried = true
			l.resolver.signalLocked()
		}
		wait := jittered(l.pauseLocked(failures, time.Now()))
		l.resolver.mu.Unlock()
		timer.Reset(wait)
		gap := l.pace.gap
		if failures > 0 {
			gap = wait
		}
		if !pause(ctx, gap) {
			return
		}
	}
}

// pause waits for d, and reports whether ctx lasted for so long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jittered keeps many programs from asking at the same time.
func jittered(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1) //nolint:gosec // not a secret
}

// ask has documents asked for now. It does not block.
func (l *live) ask() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// errNoWatch is why a resolver that was made with NewFromDiscovery asks.
var errNoWatch = errors.New("client-go's DiscoveryInterface has no watch")

// publishLocked puts what is known together, and tells who wants to know what has
// changed. Caller holds the resolver's lock.
func (l *live) publishLocked(now time.Time) {
	if l.known.doc == nil || !l.open {
		return // nothing can be said yet
	}
	c := l.known.catalogue(l.resolver.last, now)
	types := l.known.types(c, l.resolver.types)
	events := l.known.events(l.resolver.types, types, now)
	if old := l.resolver.current.Load(); old != nil && len(events) == 0 && old.same(c) {
		return // it goes on being current, with all that it has been found to say
	}
	l.resolver.last, l.resolver.types = c, types
	l.resolver.replaceLocked(c, events)
}

// pauseLocked returns how long to wait before the documents are asked for again, after
// so many failures in a row.
func (l *live) pauseLocked(failures int, now time.Time) time.Duration {
	if failures > 0 {
		return min(l.pace.awaited<<min(failures-1, 4), 3*l.pace.polled)
	}
	legacy := l.known.doc != nil && l.known.doc.named.legacy
	wait := l.pace.settled
	if l.polls() {
		wait = l.pace.polled
		if legacy {
			wait *= l.pace.crowded
		}
	}
	restless := l.known.unsettled() || l.known.awaited()
	switch {
	case !restless:
		l.restless = time.Time{}
	case l.restless.IsZero():
		l.restless = now
	}
	if restless && now.Sub(l.restless) < l.pace.patient || l.resolver.awaited > 0 && l.polls() {
		wait = l.pace.awaited
		if legacy {
			wait = l.pace.polled
		}
	} else if restless {
		wait = min(wait, l.pace.polled)
	}
	if l.known.partial() {
		wait = min(wait, l.pace.polled)
	}
	return wait
}
