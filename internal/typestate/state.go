package typestate

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

var _ source.Observer = (*State)(nil)

// Config says whose state it is.
type Config struct {
	GVR schema.GroupVersionResource
	// Namespace limits requests for a namespaced type; empty means all.
	Namespace string
	// Resolver is discovery. Nil: the type is taken to be served and namespaced, and requests tell.
	Resolver *discovery.Resolver
	// Resolve asks Resolver about the type, in the version that is wanted. It may block.
	Resolve func(ctx context.Context) (discovery.Resource, error)
	// Changed is broadcast when the snapshot has changed.
	Changed *broadcast.Broadcaster
	// Completed is called when what the source has passed on has changed. It must not block.
	Completed func()
}

// State is what one informer knows of its type. It is the observer of the informer's source, and
// safe for concurrent use. No method but [State.Run], [State.AskUntilServed] and [State.Confirm] blocks.
type State struct {
	cfg       Config
	available *source.Availability // what the source knows: written by changeLocked only
	news      chan struct{}        // has one if discovery is to be asked now
	log       stateLog
	received  atomic.Uint64 // bytes

	// mu guards the fields below. It is held over no call but those of given, has and listed,
	// which read what the source has passed on and do not block.
	mu     sync.Mutex
	now    Snapshot
	heard  uint64 // what has happened that makes an answer of discovery out of date
	runs   bool   // Run asks discovery
	given  func() source.State
	listed func() bool
	has    func(key string) bool

	unindexed    unindexed
	hasUnindexed atomic.Bool
}

// New returns the state of a type of which nothing is known. It starts nothing.
func New(cfg Config) *State {
	serving := source.Held
	if cfg.Resolver == nil {
		serving = source.Served
	}
	s := &State{
		cfg: cfg, news: make(chan struct{}, 1), log: stateLog{gvr: cfg.GVR},
		now:    Snapshot{GVR: cfg.GVR, Namespace: cfg.Namespace, Serving: serving, stored: 1},
		given:  func() source.State { return source.State{} },
		listed: func() bool { return false },
		has:    func(string) bool { return false },
	}
	s.available = source.NewAvailability(s.now.sourceType())
	return s
}

// Read says where to read what the source has passed on, whether it has passed on an object
// with a key, and whether the informer has synced once. All are called with a lock held: they
// must neither block nor call the State. To be called before the informer runs.
func (s *State) Read(given func() source.State, has func(key string) bool, listed func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given, s.has, s.listed = given, has, listed
}

// Availability is what the source follows.
func (s *State) Availability() *source.Availability { return s.available }

// Snapshot returns all that is known.
func (s *State) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readLocked()
}

// readLocked returns what is known with what the source has passed on. The caller holds mu.
func (s *State) readLocked() Snapshot {
	now := s.now
	now.Given, now.Listed, now.At = s.given(), s.listed(), time.Now()
	now.Traffic.Bytes, now.Traffic.Events, now.Traffic.LastEvent = s.received.Load(), now.Given.Events, now.Given.LastEvent
	now.Rejected = s.rejectedLocked(&now)
	return now
}

// change replaces what is known by what edit makes of it, all at once, and returns what was
// known before and is known now. Edit must not block.
func (s *State) change(edit func(next *Snapshot)) (before, now Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeLocked(edit)
}

// changeLocked is change for a caller that holds mu.
func (s *State) changeLocked(edit func(next *Snapshot)) (before, now Snapshot) {
	before = s.now
	next := s.readLocked()
	edit(&next)
	next.Rejected = s.rejectedLocked(&next)
	_, _, failing := next.Failing()
	switch {
	case failing, next.Rejected.Count > 0, !next.given():
		next.SyncedSince = time.Time{}
	case next.SyncedSince.IsZero():
		next.SyncedSince = next.At
	}
	s.now = next
	s.available.Set(next.sourceType())
	s.cfg.Changed.Broadcast()
	return before, next
}

// Begin says that the informer has been started with ctx, whose logger gets the log lines.
func (s *State) Begin(ctx context.Context) {
	s.log.begin(ctx)
	s.change(func(next *Snapshot) { next.Begun = next.At })
}

// asking returns what answered needs to tell whether an answer is out of date.
func (s *State) asking() (heard uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

// answered takes discovery's answer to a question that was asked when heard was current. An
// answer that is out of date has no effect; discovery has to be asked again.
func (s *State) answered(heard uint64, res discovery.Resource, err error) {
	reason := status.Reason("")
	if err != nil {
		reason = Classify(err) // which may call code of others: not under mu
	}
	s.mu.Lock()
	if heard != s.heard {
		s.mu.Unlock()
		return
	}
	if err != nil && errors.Is(err, discovery.ErrInconclusive) && s.now.known() {
		s.mu.Unlock()
		return // what discovery cannot tell stays as it was, and its requests go on
	}
	before, now := s.changeLocked(func(next *Snapshot) {
		if err == nil {
			next.serve(res, s.cfg.Namespace)
			return
		}
		next.refuse(err, reason)
	})
	s.mu.Unlock()
	if err != nil {
		s.log.refused(&now, reason, err)
		return
	}
	s.log.healed(&before, &now)
}

// serve says that discovery serves the type, as res.
func (s *Snapshot) serve(res discovery.Resource, namespace string) {
	if s.replacedBy(res) {
		s.Generation++
		s.Last = s.Evidence
		s.ServedSince = s.At
		s.List, s.Watch, s.doubt = Condition{}, Condition{}, time.Time{} // of another type
		s.resource = (&Snapshot{}).completed(res)
	} else {
		if !s.known() || s.Serving != source.Served {
			s.ServedSince = s.At
			s.ended(status.ReasonNotFound)
		}
		s.resource = s.completed(res)
	}
	s.Serving = source.Served
	s.Evidence, s.denied, s.Discovery = discovery.Evidence{}, time.Time{}, Condition{}
	s.Namespace = metav1.NamespaceAll
	if res.Namespaced {
		s.Namespace = namespace
	}
}

// ended ends the requests' conditions of that reason.
func (s *Snapshot) ended(reason status.Reason) {
	if s.List.Reason == reason {
		s.List = Condition{}
	}
	if s.Watch.Reason == reason {
		s.Watch = Condition{}
	}
}

// absentFor is how long discovery must have denied a type for that to be evidence where a
// resolver has none: longer than a resolver that polls takes from one answer to the next.
const absentFor = 15 * time.Second

// refuse says that discovery does not serve the type.
func (s *Snapshot) refuse(err error, reason status.Reason) {
	s.Discovery = s.Discovery.failed(err, reason, s.At)
	denied := errors.Is(err, discovery.ErrNotServed) && !elsewhere(err)
	if denied && s.known() && s.Evidence.Kind == "" {
		// A resolver that runs only since the type is gone never tells of its end. What
		// it says twice is the evidence then, and the type itself is asked, too.
		switch {
		case s.denied.IsZero():
			s.denied = s.At
		case s.At.Sub(s.denied) >= absentFor:
			s.Evidence = discovery.Evidence{Kind: discovery.NotListed, At: s.At}
		}
	}
	switch {
	case s.Evidence.Kind == discovery.CRDDeleted: // whatever there is in its place
		s.Serving = source.Gone
	case s.Evidence.Kind != discovery.NotListed || !denied:
		s.Serving = source.Held
	case s.Serving != source.Gone: // the type itself has not said so yet
		s.Serving = source.Missing
	}
}

// elsewhere reports whether err says that the objects are there, in another version or
// behind a CRD that is not served.
func elsewhere(err error) bool {
	notServed, is := errors.AsType[*discovery.NotServedError](err)
	return errors.Is(err, discovery.ErrNotEstablished) || is && len(notServed.Versions) > 0
}

// Heard takes an event of the resolver about the type. Discovery is asked again.
func (s *State) Heard(event discovery.Event) {
	s.mu.Lock()
	s.heard++
	if event.Type == discovery.Removed {
		// The end of a CRD that was deleted before the known one was created is no news.
		if uid, known := event.Evidence.CRDUID, s.now.uid(); uid == "" || known == "" || uid == known {
			s.changeLocked(func(next *Snapshot) { next.Evidence = event.Evidence })
		}
	}
	s.mu.Unlock()
	s.Look()
}

// Look has discovery asked now. It does not block.
func (s *State) Look() {
	select {
	case s.news <- struct{}{}:
	default: // it is about to be asked
	}
}

// Probed takes the answer of a type that is [source.Missing] to a list of its own: the source
// asked for it as t. An answer about anything but the current type has no effect.
func (s *State) Probed(t source.Type, gone bool) {
	s.mu.Lock()
	if s.now.sourceType() != t {
		s.mu.Unlock()
		return
	}
	before, now := s.changeLocked(func(next *Snapshot) {
		if gone {
			next.Serving = source.Gone
			return
		}
		next.Serving, next.Discovery = source.Served, Condition{}
	})
	s.mu.Unlock()
	if !gone {
		s.log.healed(&before, &now)
	}
}

// Confirm reports whether the type is still of the CRD that it is known to be of, as far as
// the server tells. If it is of another one, or the CRD is gone, that is evidence, and
// discovery is asked what serves the type now. It makes one request.
func (s *State) Confirm(ctx context.Context, _ source.Type) bool {
	snapshot := s.Snapshot()
	known := snapshot.uid()
	if s.cfg.Resolver == nil || known == "" {
		return true
	}
	uid, err := s.facts().CRDUID(ctx, s.cfg.GVR.GroupResource())
	switch {
	case err == nil && uid == known:
		return true
	case err != nil && !errors.Is(err, discovery.ErrNotServed):
		return true // it cannot be told
	}
	s.mu.Lock()
	if s.now.uid() == known {
		s.heard++
		s.changeLocked(func(next *Snapshot) {
			next.Evidence = discovery.Evidence{Kind: discovery.CRDDeleted, CRDUID: known, At: next.At}
			if !s.runs { // discovery is asked by AskUntilServed, which the source calls while it waits
				next.Serving = source.Held
			}
		})
	}
	s.mu.Unlock()
	s.Look()
	return false
}

// Failed implements source.Observer. An expired watch is no failure unless it happens often.
func (s *State) Failed(verb string, err error) {
	reason := Classify(err)
	notFound := apierrors.IsNotFound(err) && s.cfg.Resolver != nil
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
		} else {
			next.Watch = next.Watch.failed(err, reason, next.At)
		}
		if notFound {
			next.doubt = next.At
		}
	})
	if notFound {
		s.Look()
	}
}

// countFailure counts a failed request. Other snapshots share the old counts.
func (s *Snapshot) countFailure(reason status.Reason) {
	failures := maps.Clone(s.Traffic.Failures)
	if failures == nil {
		failures = map[status.Reason]uint64{}
	}
	failures[reason]++
	s.Traffic.Failures = failures
}

// expiryEvery is how often a watch may expire without that being a failure: servers keep some
// minutes of changes, and fewer if there are many. What is missing is listed.
const expiryEvery = time.Minute

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// Succeeded implements source.Observer. It ends the conditions that it contradicts. A list that
// is accepted also contradicts what discovery denies; a watch also contradicts a list that
// fails, since it goes on from where the cache is.
func (s *State) Succeeded(verb string) {
	before, now := s.change(func(next *Snapshot) {
		if verb == source.VerbWatch {
			next.Traffic.Watches++
			next.List, next.Watch = Condition{}, Condition{}
			return
		}
		next.Traffic.Lists++
		next.List = Condition{}
		if next.Serving == source.Served { // while it is held back, no request follows this one
			next.Discovery = Condition{}
		}
	})
	s.log.healed(&before, &now)
}

// Completed implements source.Observer: what the source has passed on has changed.
func (s *State) Completed() {
	_, now := s.change(func(*Snapshot) {})
	s.log.completed(&now)
	if s.cfg.Completed != nil {
		s.cfg.Completed()
	}
}

// Received implements source.Observer.
func (s *State) Received(bytes int) { s.received.Add(uint64(bytes)) } //nolint:gosec // not negative

// Stored says that the first list of that number is in the informer's store.
func (s *State) Stored(number int) {
	s.change(func(next *Snapshot) { next.stored = max(next.stored, number) })
}
