package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/follow"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// ErrNoDiscovery is what a factory returns without discovery that is asked for types which
// only discovery knows.
var ErrNoDiscovery = errors.New("dynamicinformer: the factory has no discovery: see WithDiscovery")

// FollowFuncs are called by [Factory.Follow] as types come and go. Either may be nil. They are functions,
// and no sequence as that of [Lease.Watch] or [discovery.Resolver.Subscribe], since the types of one
// Follow do not wait for each other.
//
// The calls of one type come one after the other: Started, Stopped, Started, …; each Started
// has its Stopped, before Follow returns. Those of different types come at the same time. A call
// that takes long, or never returns, delays only its own type, and the return of Follow; when it
// returns, the next call is for the state that the type is in by then. They may call any method of
// the factory, but must not wait for Follow.
type FollowFuncs struct {
	// Started is called with a lease on a type that is there. Handlers can be added to it, in
	// the call or later: they get an addition for each object that has been listed by then.
	// Follow releases the lease. If it was released before, Follow still waits for the type's end.
	Started func(l *Lease)
	// Stopped is called when the lease of the type has been released, with the type as it was
	// known last, and why it has gone. The evidence has no kind if the type is still there: it is
	// not selected any more, or Follow ends. As after any release, no call of the lease's handlers
	// begins any more.
	Stopped func(res discovery.Resource, evidence discovery.Evidence)
}

// FollowOption configures one call of [Factory.Follow]. Every combination is valid; of
// the same option given twice the last one counts; a nil FollowOption has no effect.
type FollowOption interface{ applyToFollow(*followOptions) }

type followOptionFunc func(*followOptions)

func (f followOptionFunc) applyToFollow(o *followOptions) { f(o) }

type followOptions struct {
	starts int
	lease  []LeaseOption
}

// defaultStartLimit is how many types are started at a time without WithStartLimit.
const defaultStartLimit = 8

func newFollowOptions(opts []FollowOption) followOptions {
	// Discovery has just reported the type: the informer asks about it again, not Acquire.
	o := followOptions{
		starts: defaultStartLimit,
		lease:  []LeaseOption{WithAllowAbsent(), WithLeaseName("follow"), WithVersionPolicy(discovery.FollowPreferred())},
	}
	for _, opt := range opts {
		if opt != nil {
			opt.applyToFollow(&o)
		}
	}
	return o
}

// WithStartLimit lets at most n types at a time be on their way to their first list. The
// default, and what zero or less means, is 8. A type whose list fails, or takes longer than
// 5 s, makes way for the next, and goes on by itself.
func WithStartLimit(n int) FollowOption {
	return followOptionFunc(func(o *followOptions) {
		o.starts = n
		if n <= 0 {
			o.starts = defaultStartLimit
		}
	})
}

// WithLeaseOptions gives the leases options, such as selectors or a transform. Without any
// the name of the leases is "follow", and their version policy [FollowPreferred]. May be
// given more than once.
func WithLeaseOptions(opts ...LeaseOption) FollowOption {
	opts = slices.Clone(opts)
	return followOptionFunc(func(o *followOptions) { o.lease = append(o.lease, opts...) })
}

// Follow has a lease on each type that s selects and that can be listed and watched, for as
// long as the type is there and selected, and calls to. It returns when ctx ends, with nil, or
// when the factory is shut down, with [ErrShutDown]: after all its leases have been released and
// all calls have returned. Before the factory is started it waits for that. Calls of Follow are
// independent of each other. Leases share informers with others of the same version policy, which
// is not that of ForResource: WithLeaseOptions(WithVersionPolicy(discovery.Exact())) shares with
// it. A type that others lease with other options gets an informer of its own. The version policy
// of s does not matter: a type is followed once, in the version of the leases' policy.
//
// A type is stopped when it has gone for certain, when its CustomResourceDefinition serves no
// version of it, or when it is not selected any more, since its verbs, categories or the
// labels of its CRD have changed. A list that fails stops nothing, nor does discovery that fails,
// or another version that is served: [Factory.Status] returns how each type does. If it can't be
// decided whether a type is selected, it stays as it is, and is looked at again every 2 s; see
// [discovery.Resolver.Selects].
//
// When the CRD has been deleted, the lease is released after its handlers have been given the
// deletion of each object, unless the cache is kept, or one handler has been in one call for
// 10 s. If the type has been created again by then, additions of the new one may come before
// the release, too; handlers of the next lease get all of them. A CRD that was created again
// is another type: the old one is stopped, and the new one started. A type that comes and goes
// repeatedly is started less and less often, down to once in 5 s, until it has stayed for 10 s.
//
// Errors are [*discovery.SelectorError], [ErrNoDiscovery] and [ErrShutDown].
func (f *Factory) Follow(ctx context.Context, s discovery.Selector, to FollowFuncs, opts ...FollowOption) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("dynamicinformer: follow: %w", err)
	}
	if f.options.resolver == nil {
		return ErrNoDiscovery
	}
	if f.awaitStart(ctx) {
		o := newFollowOptions(opts)
		cfg := follow.Config{
			Resolver: f.options.resolver, Selector: s, Starts: o.starts, Stopped: to.Stopped, Closed: f.closing,
			Acquire: func(ctx context.Context, gvr schema.GroupVersionResource) (follow.Lease, error) {
				return f.acquireFollowed(ctx, gvr, o.lease)
			},
		}
		if to.Started != nil {
			cfg.Started = func(l follow.Lease) { to.Started(l.(followedLease).Lease) }
		}
		follow.Run(ctx, cfg)
	}
	if ctx.Err() != nil {
		return nil
	}
	return ErrShutDown
}

// awaitStart waits until the factory has been started, so that its resolver runs, and
// reports whether that is so.
func (f *Factory) awaitStart(ctx context.Context) bool {
	select {
	case <-f.started:
	case <-f.closing:
	case <-ctx.Done():
	}
	return closed(f.started) && !closed(f.closing) && ctx.Err() == nil
}

// acquireFollowed returns a lease on gvr, with an informer of its own if others have one with
// other options.
func (f *Factory) acquireFollowed(ctx context.Context, gvr schema.GroupVersionResource, opts []LeaseOption) (follow.Lease, error) {
	l, err := f.Acquire(ctx, gvr, opts...)
	if errors.Is(err, ErrConflict) {
		l, err = f.Acquire(ctx, gvr, append(slices.Clip(opts), WithSeparateInformer())...)
	}
	if err != nil {
		return nil, err
	}
	return followedLease{l}, nil
}

// followedLease is a lease as internal/follow needs it.
type followedLease struct{ *Lease }

var _ follow.Lease = followedLease{}

// Changed implements follow.Lease.
func (l followedLease) Changed() <-chan struct{} { return l.entry.changed.Next() }

// Listed implements follow.Lease.
func (l followedLease) Listed() <-chan struct{} { return l.entry.firstList() }

// Waits implements follow.Lease. After a watch-list that has failed a list is sent at once, unless
// the server has asked for a pause, which the client may make by itself.
func (l followedLease) Waits() bool {
	now := l.entry.state.Snapshot()
	verb, c, failing := now.Failing()
	return failing && (verb != source.VerbWatch || c.Reason == status.ReasonThrottled) || l.released.Load() || closed(l.entry.done)
}

// Deletion implements follow.Lease.
func (l followedLease) Deletion(end discovery.Evidence) follow.Deletion {
	e := l.entry
	if end.Kind != discovery.CRDDeleted && end.Kind != discovery.NotListed {
		return follow.Deletion{Phase: follow.DeletionDone} // its objects are still there
	}
	now := e.state.Snapshot()
	gone, given := now.Ended(end), now.Given
	delivered, waiting := e.informer.handlers.Progress(l.handlers)
	d := follow.Deletion{Phase: follow.DeletionRunning, Objects: given.Objects, Delivered: delivered}
	emptied := given.Objects == 0 || given.Generation == now.Generation && now.Serving != source.Gone
	switch {
	case l.released.Load(), closed(e.done), !e.hasSynced() && given.Objects == 0:
		d.Phase = follow.DeletionDone
	case !gone && end.Kind == discovery.NotListed:
		d.Phase = follow.DeletionUnknown
	case gone && (e.settings.removal == KeepCache || emptied && !waiting):
		d.Phase = follow.DeletionDone
	}
	return d
}
