package typestate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

var _ source.Observer = (*State)(nil)

// Config configures a State.
type Config struct {
	// Namespace limits requests for a namespaced type; empty means all.
	Namespace string
	// Resolver is discovery. If it is nil, requests are sent as for a served and namespaced type.
	Resolver *discovery.Resolver
	// Resolve asks Resolver about the type in the selected version. It may block. With both a resource and an
	// error, the type is served, but the informer's name does not mean it alone: requests continue, and the error
	// is a failure of discovery.
	Resolve func(ctx context.Context) (discovery.Resource, error)
	// Named reports whether the informer is on what a name means: its GVR has the parts of the name, and Resolve may
	// return another type each time.
	Named bool
	// Changed is broadcast when the snapshot has changed.
	Changed *broadcast.Broadcaster
	// Completed is called when what the source has passed on has changed. It must not block.
	Completed func()
}

// State is the state of one informer's type. It is the observer of the informer's source, and safe
// for concurrent use. Only [State.Run], [State.AskUntilServed] and [State.Confirm] block.
type State struct {
	cfg       Config
	available *source.Availability // the source's view; only changeLocked writes to it
	news      chan struct{}        // has a value if discovery must be asked now
	log       stateLog
	received  atomic.Uint64 // bytes

	// mu guards the fields below. It is held only during calls of source and listed, which
	// read the state of the source and do not block.
	mu     sync.Mutex
	now    record
	events uint64 // the number of events that make earlier answers of discovery out of date
	runs   bool   // Run asks discovery
	source Source
	listed func() bool

	unindexed    unindexed
	hasUnindexed atomic.Bool
}

// New returns the state of an informer on gvr, whose type is unknown. It starts no goroutine.
func New(gvr schema.GroupVersionResource, cfg Config) *State {
	serving := source.Held
	if cfg.Resolver == nil {
		serving = source.Served
	}
	s := &State{
		cfg: cfg, news: make(chan struct{}, 1), log: stateLog{gvr: gvr},
		now:    record{GVR: gvr, Namespace: cfg.Namespace, Serving: serving, stored: 1},
		source: nothing{},
		listed: func() bool { return false },
	}
	s.available = source.NewAvailability(s.now.sourceType())
	return s
}

// Source is the state of a source, and the objects that it has passed to its reflector. Its methods do not block.
type Source interface {
	State() source.State
	// Has reports whether the reflector has an object with that key.
	Has(key string) bool
	// Report returns the state with all its parts, whose slices are not written to.
	Report() source.Report
}

// nothing is the Source before there is one.
type nothing struct{}

func (nothing) State() source.State   { return source.State{} }
func (nothing) Has(string) bool       { return false }
func (nothing) Report() source.Report { return source.Report{} }

// SetSource sets the source, and the function that reports whether the informer has synced once. They are called
// with a lock held: they must not block and not call the State. SetSource must be called before the informer runs.
func (s *State) SetSource(from Source, listed func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source, s.listed = from, listed
}

// Availability returns the state of the type for the source.
func (s *State) Availability() *source.Availability { return s.available }

// Synced is Snapshot.Synced of the present state.
func (s *State) Synced() bool {
	now := s.Snapshot()
	return now.Synced()
}

// Snapshot returns the present state.
func (s *State) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readLocked(s.source.State())
}

// readLocked returns the present state with the state of its source. The caller holds mu.
func (s *State) readLocked(from source.State) Snapshot {
	now := Snapshot{record: s.now, At: time.Now(), Source: from, Listed: s.listed()}
	now.Traffic.Bytes, now.Traffic.Events, now.Traffic.LastEvent = s.received.Load(), now.Source.Events, now.Source.LastEvent
	now.LeftOut = s.leftOutLocked(&now)
	return now
}

// change replaces the state as a whole by the result of edit, which must not block.
func (s *State) change(edit func(next *Snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changeLocked(edit)
}

// changeLocked is change for a caller that holds mu. It returns the state.
func (s *State) changeLocked(edit func(next *Snapshot)) (now Snapshot) {
	next := s.readLocked(s.source.State())
	if next.At.Sub(next.unsettled) >= settleFor {
		next.unsettled = time.Time{}
	}
	edit(&next)
	next.LeftOut = s.leftOutLocked(&next)
	switch {
	case next.fails(), next.LeftOut.Count > 0, !next.hasList():
		next.SyncedSince = time.Time{}
	case next.SyncedSince.IsZero():
		next.SyncedSince = next.At
	}
	s.now = next.record
	s.available.Set(next.sourceType())
	s.cfg.Changed.Broadcast()
	return next
}

// Means records what the informer's name means, before the informer runs.
func (s *State) Means(gvr schema.GroupVersionResource) {
	s.change(func(next *Snapshot) { next.GVR = gvr })
}

// groupResource returns the type, or the parts of a name that has meant no type yet.
func (s *State) groupResource() schema.GroupResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.GVR.GroupResource()
}

// Begin records that the informer has been started with ctx. The logger of ctx gets the log lines.
func (s *State) Begin(ctx context.Context) {
	s.log.begin(ctx)
	s.change(func(next *Snapshot) { next.Begun = next.At })
}

// HandleEvent handles an event of the resolver about the type. Discovery is asked again.
func (s *State) HandleEvent(event discovery.Event) {
	s.mu.Lock()
	s.events++
	of := event.Resource.GVR.GroupResource() == s.now.GVR.GroupResource() // a name may mean several types in turn
	switch {
	case of && event.Type == discovery.Removed:
		// The event may be of an older CRD, which was deleted before the known CRD was created, or of a CRD
		// that does not serve this version.
		uid, known := event.Evidence.CRDUID, s.now.uid()
		weaker := s.now.Evidence.Kind == discovery.CRDDeleted && event.Evidence.Kind != discovery.CRDDeleted
		if !weaker && (uid == "" || known == "" && !s.now.servedElsewhere() || uid == known) {
			s.changeLocked(func(next *Snapshot) { next.Evidence = event.Evidence })
		}
	case of && slices.Contains(event.Changes, discovery.BackingChanged) && s.now.resource != nil && s.now.resource.Backing == discovery.BackingUnknown:
		s.changeLocked(func(next *Snapshot) { next.relocated = true })
	}
	s.mu.Unlock()
	s.Look()
}

// setRuns records whether Run runs.
func (s *State) setRuns(runs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = runs
}

// Look makes Run ask discovery now. It does not block.
func (s *State) Look() {
	select {
	case s.news <- struct{}{}:
	default: // it will be asked
	}
}

// Probed handles the result of a list of t, which was [source.Missing]. It has no effect if the type
// is no longer t.
func (s *State) Probed(t source.Type, gone bool) {
	s.mu.Lock()
	if s.now.sourceType() != t {
		s.mu.Unlock()
		return
	}
	s.changeLocked(func(next *Snapshot) {
		if gone {
			next.Serving = source.Gone
			return
		}
		next.Serving, next.Discovery = source.Served, Condition{}
	})
	s.mu.Unlock()
	if !gone {
		s.log.healed(s.fails)
	}
}

// fails reports whether discovery or requests fail.
func (s *State) fails() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.fails()
}

// isAbsent reports whether the type is not served.
func (s *State) isAbsent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.Serving != source.Served
}

// Confirm reports whether the type still has the known CRD, or that can't be determined. If it has
// another CRD, or the CRD is gone, that is evidence, and discovery is asked again. Confirm sends one
// request.
func (s *State) Confirm(ctx context.Context, _ source.Type) bool {
	snapshot := s.Snapshot()
	known := snapshot.uid()
	if s.cfg.Resolver == nil || known == "" {
		return true
	}
	uid, err := s.facts().CRDUID(ctx, snapshot.GVR.GroupResource())
	switch {
	case err == nil && uid == known:
		return true
	case err != nil && !errors.Is(err, discovery.ErrNotServed):
		return true // it can't be determined
	}
	s.mu.Lock()
	if s.now.uid() == known {
		s.events++
		s.changeLocked(func(next *Snapshot) {
			next.Evidence = discovery.Evidence{Kind: discovery.CRDDeleted, CRDUID: known, At: next.At}
			if !s.runs { // AskUntilServed asks discovery; the source calls it while it waits
				next.Serving = source.Held
			}
		})
	}
	s.mu.Unlock()
	s.Look()
	return false
}

// successorFor is how long after the end of a CRD the objects stay in the cache if there is another CRD of
// that name, which is not served yet. Some of the objects may be the other CRD's: the API server may have
// sent them before the resolver had the events of both CRDs. When the other CRD is served, a list decides.
const successorFor = 10 * time.Second

// hasSuccessor reports whether the type's CRD was deleted a short time ago, and there is a CRD of that name
// now. It sends at most one request.
func (s *State) hasSuccessor(ctx context.Context) bool {
	now := s.Snapshot()
	if now.Evidence.Kind != discovery.CRDDeleted || now.Serving == source.Gone {
		return false
	}
	ctx, cancel := context.WithDeadline(ctx, now.Evidence.At.Add(successorFor))
	defer cancel()
	_, err := s.facts().CRDUID(ctx, now.GVR.GroupResource())
	return err == nil
}

// Failed implements source.Observer. An expired watch is a failure only if it happens often.
func (s *State) Failed(verb string, err error) {
	reason := Classify(err)
	doubted := apierrors.IsNotFound(err) || errors.Is(err, source.ErrWrongScope)
	expired := isExpired(err)
	s.change(func(next *Snapshot) {
		if expired {
			ordinary := next.At.Sub(next.expiry) > expiryEvery
			next.expiry = next.At
			if ordinary {
				return
			}
		}
		next.countFailure(reason)
		if verb == source.VerbList {
			next.List = next.List.failed(err, reason, next.At)
			next.endWatchIn(namespaceOf(err, ""))
		} else {
			// Another server of the type may refuse watches. Later refusals say nothing new.
			doubted = doubted || next.Watch.Err == nil && (apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err))
			next.Watch = next.Watch.failed(err, reason, next.At)
		}
		doubted = doubted && s.cfg.Resolver != nil
		if doubted {
			next.doubt = next.At
		}
	})
	if doubted {
		s.Look()
	}
}

// endWatchIn makes the failure of a watch in a namespace of a set a part of that of the list that replaces the watch.
func (s *Snapshot) endWatchIn(namespace string) {
	if namespace == "" || namespaceOf(s.Watch.Err, "") != namespace {
		return
	}
	s.List.Attempts += s.Watch.Attempts
	if s.Watch.Since.Before(s.List.Since) {
		s.List.Since = s.Watch.Since
	}
	s.Watch = Condition{}
}

// Doubted implements source.Observer. Discovery decides whether the type is gone.
func (s *State) Doubted() {
	if s.cfg.Resolver != nil {
		s.change(func(next *Snapshot) { next.doubt = next.At })
		s.Look()
	}
}

// countFailure counts a failed request. It copies the counts, which other snapshots share.
func (s *Snapshot) countFailure(reason status.Reason) {
	failures := maps.Clone(s.Traffic.Failures)
	if failures == nil {
		failures = map[status.Reason]uint64{}
	}
	failures[reason]++
	s.Traffic.Failures = failures
}

// expiryEvery is the minimum time between expired watches that are not failures: servers keep the
// changes of some minutes, or less if there are many. A list then follows.
const expiryEvery = time.Minute

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// Succeeded implements source.Observer. It ends the conditions that the success contradicts. A list
// also ends a failure of discovery, and a failure of a watch if lists replace watches. A watch also ends
// a failure of a list, since it continues from the cache.
func (s *State) Succeeded(verb string) {
	s.change(func(next *Snapshot) {
		if verb == source.VerbWatch {
			next.Traffic.Watches++
			next.List, next.Watch = Condition{}, Condition{}
			return
		}
		next.Traffic.Lists++
		next.List = Condition{}
		if next.Source.Polling > 0 { // lists replace watches
			next.Watch = Condition{}
		}
		if next.Serving == source.Served && !next.disputed { // while the type is held, no other request follows
			next.Discovery = Condition{}
		}
	})
	s.log.healed(s.fails)
	s.log.healedIn(s.source.Report)
}

// Completed implements source.Observer: the state of the source has changed.
func (s *State) Completed() {
	s.change(func(*Snapshot) {})
	s.log.completed(s.Snapshot)
	s.log.healedIn(s.source.Report)
	if s.cfg.Completed != nil {
		s.cfg.Completed()
	}
}

// Received implements source.Observer.
func (s *State) Received(bytes int) { s.received.Add(uint64(bytes)) } //nolint:gosec // not negative

// Stored records that the first list with that number is in the informer's store.
func (s *State) Stored(number int) {
	s.change(func(next *Snapshot) { next.stored = max(next.stored, number) })
}
