package follow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// Config configures a [Follower].
type Config struct {
	// Name is the name in the status.
	Name string
	// Resolver reports the events of types. It must run.
	Resolver *discovery.Resolver
	// Selector selects types among those that support Verbs.
	Selector discovery.Selector
	Verbs    []string
	// Acquire returns a lease on a type. If it fails, it is called again after 2 s. The pause grows to 5 s while it
	// fails. An event of the type, or a limit of starts or types, can change the time of the next call.
	Acquire func(ctx context.Context, gvr schema.GroupVersionResource) (Lease, error)
	// Started is called with each lease, and Stopped after its release, with the last known state
	// of the type and the evidence of its end. The evidence has no kind if the type is still served.
	// Calls for one type are sequential: Started, Stopped, Started, and so on. Calls for different
	// types are concurrent. Each Started is followed by a Stopped before Run returns.
	Started func(l Lease)
	Stopped func(res discovery.Resource, evidence discovery.Evidence)
	// Starts is the maximum number of types that wait for their first list at the same time.
	Starts int
	// Most is the maximum number of types with a lease; zero or less: there is none. The others wait until a
	// type ends.
	Most int
	// Closed closes when no lease can be acquired any more. Run then ends too.
	Closed <-chan struct{}
}

// Lease is a lease on a type. Its methods do not block.
type Lease interface {
	// Changed returns a channel that closes when the results of the methods below, except Listed,
	// may have changed. It must be called before them.
	Changed() <-chan struct{}
	// Listed returns a channel that closes with the first list. It is nil after the first list.
	Listed() <-chan struct{}
	// Waits reports whether the first list is delayed: a request has failed, or the lease was
	// released.
	Waits() bool
	// Deletion returns the progress of the deletion of the objects of a type that has ended with
	// this evidence.
	Deletion(end discovery.Evidence) Deletion
	// Release ends the lease. It may have been released before.
	Release()
}

// Deletion is the progress of the deletion of a type's objects.
type Deletion struct {
	Phase DeletionPhase
	// Objects is the number of objects that are left, and Delivered the number of calls of
	// handlers. While these change, the deletion makes progress.
	Objects   int
	Delivered uint64
}

// DeletionPhase is the phase of a [Deletion].
type DeletionPhase int

const (
	// DeletionUnknown means that it is not known whether the objects are gone.
	DeletionUnknown DeletionPhase = iota
	// DeletionRunning means that handlers will get deletions.
	DeletionRunning
	// DeletionDone means that handlers get no more deletions.
	DeletionDone
)

// recheckEvery is the interval between checks of a type that may change without an event.
const recheckEvery = 2 * time.Second

// Follower holds leases on the types that a selector selects.
type Follower struct {
	Config
	goroutines sync.WaitGroup
	wake       chan struct{} // has a value if the timer must be set again

	// names are the names of the selector without groups and versions, named are the served types that they may mean,
	// and ambiguous the logged errors of those that an ambiguous name may mean. Only the goroutine of Run uses them.
	names     []string
	named     map[schema.GroupResource]discovery.Resource
	ambiguous map[schema.GroupResource]string

	// mu guards the fields below, and the types. It is never held across I/O, a channel
	// operation that may block, or a callback.
	mu      sync.Mutex
	types   map[schema.GroupResource]*followed
	queue   []*followed // types that wait to be started
	slots   int         // the number of types that may be started now
	active  int         // the number of types from their start until Stopped has returned
	full    bool        // types wait because of Most, and this has been logged
	recheck map[*followed]time.Time
	ending  bool
}

// New returns a follower, which holds no lease until [Follower.Run].
func New(cfg Config) *Follower {
	f := &Follower{
		Config: cfg, wake: make(chan struct{}, 1), slots: cfg.Starts,
		types: map[schema.GroupResource]*followed{}, recheck: map[*followed]time.Time{},
		named: map[schema.GroupResource]discovery.Resource{}, ambiguous: map[schema.GroupResource]string{},
	}
	for _, name := range cfg.Selector.Names {
		if ref, err := discovery.ParseRef(name); err == nil {
			f.names = append(f.names, ref.Resource)
		}
	}
	return f
}

// Run follows types until ctx ends or Closed closes. It returns after all leases have been released
// and all callbacks have returned. It must be called once.
func (f *Follower) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.goroutines.Go(func() {
		defer cancel()
		f.runTimer(ctx)
	})
	for event := range f.Resolver.Subscribe(ctx, discovery.WithLabelChanges()) {
		f.handle(ctx, event)
	}
	f.end(ctx)
	f.goroutines.Wait()
}

// Status returns the state of f. It may be called at any time.
func (f *Follower) Status() status.Follow {
	now := status.Follow{Name: f.Name, Names: slices.Clone(f.Selector.Names)}
	f.mu.Lock()
	for _, t := range f.types {
		if t.held {
			now.Types++
		}
		if t.want != nil && !t.held {
			now.Waiting++
		}
		if t.unsure != nil {
			u := *t.unsure
			u.Followed = t.held
			now.Undecided = append(now.Undecided, u)
		}
	}
	f.mu.Unlock()
	slices.SortFunc(now.Undecided, func(a, b status.Undecided) int {
		return strings.Compare(a.Name(), b.Name())
	})
	return now
}

// handle handles an event of the resolver.
func (f *Follower) handle(ctx context.Context, event discovery.Event) {
	gr := event.Resource.GVR.GroupResource()
	_, named := f.named[gr]
	named = named || slices.ContainsFunc(f.names, event.MayMean)
	switch {
	case event.Type == discovery.Removed:
		delete(f.named, gr)
		delete(f.ambiguous, gr)
		f.remove(ctx, event)
	case len(f.names) == 0:
		f.update(ctx, event.Resource)
	case named:
		f.named[gr] = event.Resource
	}
	if named { // the event may have changed what the names mean
		for _, res := range f.named {
			f.update(ctx, res)
		}
	}
}

// remove records that a type is gone.
func (f *Follower) remove(ctx context.Context, event discovery.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.types[event.Resource.GVR.GroupResource()]; t != nil {
		t.gone(event.Evidence)
		f.proceedLocked(ctx, t)
	}
}

// update updates a type, which is served as res.
func (f *Follower) update(ctx context.Context, res discovery.Resource) {
	selects, err := f.selects(res)
	if errors.Is(err, discovery.ErrAmbiguous) && f.ambiguous[res.GVR.GroupResource()] != err.Error() {
		f.ambiguous[res.GVR.GroupResource()] = err.Error()
		klog.FromContext(ctx).Info("Can't decide whether to follow the resource, nothing changes", "resource", discovery.RefOf(res.GVR), "err", err)
	} else if err == nil {
		delete(f.ambiguous, res.GVR.GroupResource())
	}
	if err == nil && !selects && !slices.ContainsFunc(f.names, res.HasName) {
		delete(f.named, res.GVR.GroupResource()) // its other versions have no name either
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.updateLocked(ctx, res, selects, err)
}

// selects reports whether res should be followed.
func (f *Follower) selects(res discovery.Resource) (bool, error) {
	for _, verb := range f.Verbs {
		if !res.Supports(verb) {
			return false, nil
		}
	}
	return f.Resolver.Selects(f.Selector, res)
}

// updateLocked updates a type to its present state. The caller holds mu.
func (f *Follower) updateLocked(ctx context.Context, res discovery.Resource, selects bool, err error) {
	gr := res.GVR.GroupResource()
	t := f.types[gr]
	if t == nil {
		if !selects && err == nil {
			return
		}
		t = newFollowed(gr)
		f.types[gr] = t
	}
	switch {
	case err != nil:
		t.undecided(res, err)
		f.recheckLocked(t, recheckEvery)
	case selects:
		t.selected(res)
	default:
		t.deselected(res)
	}
	f.proceedLocked(ctx, t)
}

// proceedLocked starts the work that t requires. The caller holds mu.
func (f *Follower) proceedLocked(ctx context.Context, t *followed) {
	switch {
	case t.busy:
		t.notify()
	case t.held && (t.end != nil || f.ending):
		t.busy = true
		f.goroutines.Go(func() { f.work(ctx, t) })
	case t.held, f.ending:
	case t.want != nil:
		f.enqueueLocked(ctx, t)
	case t.unsure != nil:
	case t.queued:
		f.queue = slices.DeleteFunc(f.queue, func(other *followed) bool { return other == t })
		t.queued = false
		f.proceedLocked(ctx, t)
	case time.Since(t.began) < resetAfter: // the number of its short starts is kept for the next start
		f.recheckLocked(t, resetAfter-time.Since(t.began))
	default:
		delete(f.types, t.gr)
		delete(f.recheck, t)
	}
}

// work does the work for t, which is held: it releases the lease if there is a reason.
func (f *Follower) work(ctx context.Context, t *followed) {
	for {
		f.mu.Lock()
		if !t.held || t.end == nil && !f.ending {
			t.busy = false
			f.proceedLocked(ctx, t)
			f.mu.Unlock()
			return
		}
		l := t.lease
		f.mu.Unlock()
		if f.awaitDeletion(ctx, t, l) {
			f.stop(ctx, t, l)
		}
	}
}

// end releases all leases at once, and calls Stopped for each type.
func (f *Follower) end(ctx context.Context) {
	f.mu.Lock()
	f.ending, f.queue = true, nil
	var leases []Lease
	for _, t := range f.types {
		if t.lease != nil {
			leases = append(leases, t.lease)
		}
		f.proceedLocked(ctx, t)
	}
	f.mu.Unlock()
	for _, l := range leases {
		l.Release()
	}
}

// recheckLocked schedules the next check of t after d. The caller holds mu.
func (f *Follower) recheckLocked(t *followed, d time.Duration) {
	f.recheck[t] = time.Now().Add(d)
	select {
	case f.wake <- struct{}{}:
	default: // it will be set
	}
}

// runTimer checks types when they are due, until ctx ends or Closed closes.
func (f *Follower) runTimer(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if next := f.recheckDue(ctx); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-f.wake:
		case <-timer.C:
		case <-f.Closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// recheckDue checks the types that are due, and returns the time of the next check.
func (f *Follower) recheckDue(ctx context.Context) (next time.Time) {
	now := time.Now()
	var unsure []*status.Undecided
	f.mu.Lock()
	for t, at := range f.recheck {
		if at.After(now) {
			continue
		}
		delete(f.recheck, t)
		if t.unsure != nil {
			unsure = append(unsure, t.unsure)
		}
		f.proceedLocked(ctx, t)
	}
	f.mu.Unlock()
	for _, u := range unsure {
		selects, err := f.selects(u.Resource)
		f.mu.Lock()
		if t := f.types[u.Resource.GVR.GroupResource()]; t != nil && t.unsure == u { // there was no event meanwhile
			f.updateLocked(ctx, u.Resource, selects, err)
		}
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.recheck {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}
