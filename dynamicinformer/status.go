package dynamicinformer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
)

// ResourceStatus is the state of one informer at one moment, and why.
type ResourceStatus struct {
	// GVR is the resource as it was asked for, and Versions under which policy.
	GVR      schema.GroupVersionResource
	Versions discovery.VersionPolicy
	// Informer is the informer's number: each that the factory makes has one of its own.
	Informer uint64
	// Resource is what discovery has resolved it to last; only its GVR is set if that has
	// not been.
	Resource discovery.Resource
	State    State
	// Namespace is where requests go; empty means everywhere.
	Namespace string
	// Reason is why it is not synced, or degraded; empty if nothing is wrong.
	Reason Reason
	// Verb is that of the request that failed, and Err how; nil if none has.
	Verb string
	Err  error
	// Listed says that it has listed its resource once, as HasSynced does, whatever came after.
	Listed bool
	// Since is when that began, or since when it is synced, Attempts how often it has been
	// tried since, and NextRetry when it is tried again; zero if that is not known.
	Since     time.Time
	Attempts  int
	NextRetry time.Time
	// FailedObjects is how many objects Reason is about, and LastFailed the key, namespace/name,
	// of the last of them; zero and empty for a reason that is about a request or the type.
	FailedObjects uint64
	LastFailed    string
	// StaleSince is since when the cache may be behind the server; zero if it is not, or
	// has nothing yet.
	StaleSince time.Time
	// Evidence is why the type is taken to be gone; its Kind is empty if it is not.
	Evidence discovery.Evidence
	// Generation counts the types that were served one after the other under this name.
	// While Flushing, the cache still has objects of one before.
	Generation int
	Flushing   bool
	// Objects is how many the informer has been given, and ResourceVersion up to where.
	Objects         int
	ResourceVersion string
	// Traffic is what it has asked for and been given.
	Traffic Traffic
	// Leases is how many leases there are, and Holders who has them, by name; Pinned says
	// that ForResource has asked for it.
	Leases  int
	Holders []Holder
	Pinned  bool
	// Handlers are its event handlers, in the order in which they were added.
	Handlers []HandlerStatus
}

// HandlerStatus is how one event handler does.
type HandlerStatus struct {
	// Handler is what client-go calls it: its Go type or, of ResourceEventHandlerFuncs, where
	// the functions are. Lease is the name of the lease that it is of.
	Handler string
	Lease   string
	// Delivered is how often it has been called.
	Delivered uint64
	// Backlog is how many events wait for it, the one that it has included. It is worked
	// out from what the informer was given, and no more than a good guess if the handler
	// was added in the middle of a burst, or if objects can't be transformed; one that has
	// been idle for a second has none.
	Backlog int
	// RunningSince is since when it has been in a call that has not returned; zero: in none.
	RunningSince time.Time
	// BehindSince is since when events have been waiting whenever a call returned; zero if
	// it has caught up.
	BehindSince time.Time
}

// Status returns the state of each informer, sorted by name. It asks nobody, and no
// informer that is busy holds it up.
func (f *Factory) Status() []ResourceStatus {
	entries := f.all()
	all := make([]ResourceStatus, len(entries))
	for i, e := range entries {
		all[i] = f.status(e)
	}
	return all
}

// status returns that of e.
func (f *Factory) status(e *entry) ResourceStatus {
	f.mu.Lock()
	s := ResourceStatus{GVR: e.gvr, Versions: e.versions, Informer: e.number, Leases: len(e.leases), Pinned: e.pinned}
	s.Holders = e.heldByLocked()
	forgotten := e.forgotten
	f.mu.Unlock()
	now := time.Now()
	sortHolders(s.Holders)
	s.Handlers = e.informer.informer.meters.statuses(now)
	is := e.state.Snapshot()
	s.Resource, s.Namespace, s.Evidence, s.Generation = is.Resource, is.Namespace, is.Evidence, is.Generation
	s.Listed, s.Objects, s.ResourceVersion, s.Flushing = is.Listed, is.Given.Objects, is.Given.Version, is.Flushing()
	s.Traffic = e.trafficIn(is.Given)
	verb, failing, fails := is.Failing()
	synced := is.Synced()
	switch idle := f.notRunning(e); {
	case forgotten, closed(e.done):
		s.Reason = ReasonStopped
	case !synced && idle != "":
		s.Reason = idle
	case fails:
		s.Reason = failing.Reason
	case !synced:
		s.Reason = ReasonSyncing
	case is.Rejected.Count > 0:
		s.Reason = is.Rejected.Reason
	}
	s.State = is.State(s.Reason)
	switch {
	case s.State == StateSynced:
		s.Since = is.SyncedSince
	case fails || !synced:
		wrong := is.NotSynced()
		s.Since = wrong.Since
	}
	if r := is.Rejected; r.Count > 0 && s.Reason == r.Reason {
		s.Since, s.Err, s.FailedObjects, s.LastFailed = r.Since, r.Err, uint64(r.Count), r.Key //nolint:gosec // not negative
	}
	if !fails {
		return s
	}
	s.Verb, s.Err, s.Attempts = verb, failing.Err, failing.Attempts
	if s.Listed && (is.Serving != source.Gone || s.Objects > 0) {
		s.StaleSince = failing.Since
	}
	if verb != "" && is.Given.Due.After(now) {
		s.NextRetry = is.Given.Due
	}
	return s
}

// Status returns the state of the lease's informer. It asks nobody.
func (l *Lease) Status() ResourceStatus { return l.factory.status(l.entry) }

// Watch returns the states of the lease's informer: the one it has, and the last one
// whenever that has changed. One that nobody has taken is replaced by the next. The
// channel closes when ctx ends, or the informer has, after its last state.
func (l *Lease) Watch(ctx context.Context) <-chan ResourceStatus {
	states := make(chan ResourceStatus, 1)
	go func() {
		defer close(states)
		l.watch(ctx, states)
	}()
	return states
}

func (l *Lease) watch(ctx context.Context, states chan ResourceStatus) {
	for {
		changed, first := l.entry.changed.Next(), l.entry.firstList()
		ended := closed(l.entry.done)
		status := l.Status()
		select {
		case <-states: // nobody has taken it
		default:
		}
		states <- status // the only one who sends
		if ended {
			return
		}
		select {
		case <-changed:
		case <-first:
		case <-l.entry.done:
		case <-ctx.Done():
			return
		}
	}
}
