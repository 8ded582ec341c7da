package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gvrkit/gvrkit/discovery"
)

// ErrNoDiscovery is what a factory returns without discovery that is asked for types which
// only discovery knows.
var ErrNoDiscovery = errors.New("dynamicinformer: the factory has no discovery: see WithDiscovery")

// FollowFuncs are called by [Factory.Follow] as types come and go. Either may be nil.
//
// The calls of one type come one after the other: Started, Stopped, Started, …; each Started
// has its Stopped, the last ones before Follow returns. Those of different types come at the
// same time. One that takes its time, or never returns, holds up nobody but its own type, and
// the return of Follow: what happens to the type meanwhile is put together, so that the last
// state is told. They may call anything of the factory, but must not wait for Follow.
type FollowFuncs struct {
	// Started is called with a lease on a type that is there. Handlers can be added to it, in
	// the call or later: they get an addition for each object that has been listed by then.
	// Follow releases the lease, and whoever does so before only ends it for themselves.
	Started func(l *Lease)
	// Stopped is called when the lease of the type has been released, with the type as it was
	// known last, and why it has gone. The evidence has no kind if it is still there: it is
	// not selected any more, or Follow ends. Handlers of the lease are not called any more,
	// but for calls that have begun, as after any release.
	Stopped func(res discovery.Resource, evidence discovery.Evidence)
}

// FollowOption configures one call of [Factory.Follow]. Every combination is valid; of
// the same option given twice the last one counts; a nil FollowOption has no effect.
type FollowOption interface{ applyToFollow(*followOptions) }

type followOptionFunc func(*followOptions)

func (f followOptionFunc) applyToFollow(o *followOptions) { f(o) }

type followOptions struct {
	starts int
	lease  []ResourceOption
}

// usualStarts is how many types are started at a time, if nobody says otherwise.
const usualStarts = 8

func newFollowOptions(opts []FollowOption) followOptions {
	// What discovery has told of need not be asked about: the informer does that.
	o := followOptions{
		starts: usualStarts,
		lease:  []ResourceOption{AllowAbsent(), WithLeaseName("follow"), WithVersionPolicy(discovery.FollowPreferred())},
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
			o.starts = usualStarts
		}
	})
}

// WithLeaseOptions gives the leases options, such as selectors or a transform. Without any
// the name of the leases is "follow", and their version policy [FollowPreferred]. May be
// given more than once.
func WithLeaseOptions(opts ...ResourceOption) FollowOption {
	opts = slices.Clone(opts)
	return followOptionFunc(func(o *followOptions) { o.lease = append(o.lease, opts...) })
}

// Follow has a lease on each type that s selects and that can be listed and watched, for as
// long as it is there and selected, and tells to. It returns when ctx ends, with nil, or when
// the factory is shut down, with [ErrShutDown]: after all its leases have been released and
// all calls have returned. Before the factory is started it waits for that. Each call follows
// for itself. Leases share informers with others of the same version policy, which is not that
// of ForResource: WithLeaseOptions(WithVersionPolicy(discovery.Exact())) shares with it. A type that others
// lease with other options gets an informer of its own. What s says of versions does not matter: a type is
// followed once, in the version that the leases' policy says.
//
// A type is stopped when it has gone for certain, when its CustomResourceDefinition serves no
// version of it, or when it is not selected any more, since its verbs, categories or the
// labels of its CRD have changed. That it can't be listed stops nothing, nor that discovery
// fails, or that other versions are served: [Factory.Status] says how each type does. What can't
// be told to be selected is looked at again every 2 s, and stays as it is until then; see
// [discovery.Resolver.Selects].
//
// When the CRD has been deleted the lease is released after its handlers have been given the
// deletion of each object, unless the cache is kept, or one of them has been in one call for
// 10 s. If the type has been created again by then, additions of the new one may come before
// the release, too; handlers of the next lease get all of them. A CRD that was created again
// is another type: the old one is stopped, and the new one started. A type that comes and goes
// again and again is started less and less often, down to once in 5 s, until it has stayed for
// 10 s.
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
		newFollow(f, s, to, newFollowOptions(opts)).run(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return ErrShutDown
}

// awaitStart waits until the factory has been started, so that its resolver runs, and
// reports whether that is so.
func (f *Factory) awaitStart(ctx context.Context) bool {
	for {
		begun := f.begun.Next()
		f.mu.Lock()
		life, over := f.life, closed(f.closing)
		if life != nil && !over && ctx.Err() == nil {
			f.attendLocked(life) //nolint:contextcheck // the resolver runs as long as the factory does
			f.mu.Unlock()
			return true
		}
		f.mu.Unlock()
		if over || ctx.Err() != nil {
			return false
		}
		select {
		case <-begun:
		case <-f.closing:
		case <-ctx.Done():
		}
	}
}
