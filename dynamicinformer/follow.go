package dynamicinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/follow"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// ErrNoDiscovery is returned by a method that requires discovery if the factory has none.
var ErrNoDiscovery = errors.New("dynamicinformer: the factory has no discovery: see WithDiscovery")

// FollowFuncs are the callbacks of [Factory.Follow]. Either may be nil.
//
// The calls for one type are sequential: Started, Stopped, Started, and so on. Each Started is followed by a Stopped before Follow returns.
// Calls for different types are concurrent. A call that takes long, or never returns, delays only its own type and the return of Follow.
// The next call for that type has the state of the type at that time. Callbacks may call any method of the factory, but must not wait for Follow.
type FollowFuncs struct {
	// Started is called with a lease on a type that is served. The program can add handlers to the lease, in the call or later: they get an addition for each
	// object that is already listed. Follow releases the lease. If the program has released it before, Follow still waits for the end of the type.
	Started func(l *Lease)
	// Stopped is called after the lease of the type has been released. Res is the last known state of the type, and evidence the evidence
	// that it is gone. The evidence has no kind if the type is still served: it is no longer selected, or Follow ends. As after any
	// release, no call of the lease's handlers begins any more.
	Stopped func(res discovery.Resource, evidence discovery.Evidence)
}

// FollowOption configures one call of [Factory.Follow]. Every combination is valid. If an option is given twice, the last one counts. A nil
// FollowOption has no effect.
type FollowOption interface{ applyToFollow(*followOptions) }

type followOptionFunc func(*followOptions)

func (f followOptionFunc) applyToFollow(o *followOptions) { f(o) }

type followOptions struct {
	starts int
	most   int
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

// WithStartLimit limits the number of types that wait for their first list at the same time to n. If n is zero or less, the limit is 8, the
// default. A type whose list fails or takes longer than 5 s no longer counts, and the next type starts.
func WithStartLimit(n int) FollowOption {
	if n <= 0 {
		n = defaultStartLimit
	}
	return followOptionFunc(func(o *followOptions) { o.starts = n })
}

// WithTypeLimit limits the number of types with a lease to n. Further types wait, in the order in which they were found, until a type has
// been stopped. If n is zero or less, the default, there is no limit.
func WithTypeLimit(n int) FollowOption {
	return followOptionFunc(func(o *followOptions) { o.most = n })
}

// WithLeaseOptions adds options for the leases, such as selectors or a transform. By default, the name of the leases is "follow" and their
// version policy is [discovery.FollowPreferred]. The option may be given more than once.
func WithLeaseOptions(opts ...LeaseOption) FollowOption {
	opts = slices.Clone(opts)
	return followOptionFunc(func(o *followOptions) { o.lease = append(o.lease, opts...) })
}

// Follow holds a lease on each type that s selects, while the type is served and selected, and calls Started and Stopped. It selects only types that can be
// listed and watched; if the leases have [WithPolling], a type that can be listed is enough. When ctx ends, Follow returns nil. When the factory is shut down,
// it returns [ErrShutDown]. In both cases, it first releases all its leases and waits for its callbacks. If the factory has not been started, Follow waits for
// Start. Calls of Follow are independent of each other. Leases share informers with other leases of the same version policy. ForResource has another version
// policy: to share its informers, use WithLeaseOptions(WithVersionPolicy(discovery.Exact())). If other leases on a type have other options, the type gets a
// separate informer. Follow ignores the version policy of s: it follows a type once, in the version of the leases' policy.
//
// A type is stopped if there is evidence that it is gone, if its CustomResourceDefinition serves no version of it, or if it is no longer selected, because its
// verbs, its categories or the labels of its CRD have changed. A failed list, failed discovery, or a change of the served version do not stop a type;
// [Factory.Status] reports them. If discovery can't decide whether a type is selected, for example because a name of s means several types, Follow changes
// nothing, and asks again every 2 s: [Factory.Follows] has the type and the reason. See [discovery.Resolver.Selects].
//
// When the CRD has been deleted, Follow releases the lease after its handlers have got the deletion of each object. It does not wait for that if the cache is
// kept, or if a handler has been in one call for 10 s. If the type has been created again meanwhile, handlers may get additions of the new type before the
// release; handlers of the next lease get all of them. A CRD that was created again is another type: Follow stops the old type and starts the new one. A type
// that is removed and created repeatedly is started less often, down to once in 5 s, until it has been served for 10 s.
//
// Errors are [*discovery.SelectorError], [*OptionError] of the leases, [ErrNoDiscovery] and [ErrShutDown].
func (f *Factory) Follow(ctx context.Context, s discovery.Selector, funcs FollowFuncs, opts ...FollowOption) error {
	if err := cmp.Or(checkContext(ctx), s.Validate()); err != nil {
		return fmt.Errorf("dynamicinformer: follow: %w", err)
	}
	if f.options.resolver == nil {
		return ErrNoDiscovery
	}
	o := newFollowOptions(opts)
	lease, err := f.leaseOptions(o.lease)
	if err != nil {
		return fmt.Errorf("dynamicinformer: follow: %w", err)
	}
	if f.awaitStart(ctx) {
		cfg := follow.Config{
			Name: lease.name, Resolver: f.options.resolver, Selector: s, Verbs: lease.verbs(), Starts: o.starts, Most: o.most, Stopped: funcs.Stopped, Closed: f.closing,
			Acquire: func(ctx context.Context, gvr schema.GroupVersionResource) (follow.Lease, error) {
				return f.acquireFollowed(ctx, gvr, o.lease)
			},
		}
		if funcs.Started != nil {
			cfg.Started = func(l follow.Lease) { funcs.Started(l.(followedLease).Lease) }
		}
		follower := follow.New(cfg)
		f.mu.Lock()
		f.follows[follower] = struct{}{}
		f.mu.Unlock()
		follower.Run(ctx)
		f.mu.Lock()
		delete(f.follows, follower)
		f.mu.Unlock()
	}
	if ctx.Err() != nil {
		return nil
	}
	return ErrShutDown
}

// Follows returns the state of each call of [Factory.Follow] that runs and does not wait for Start, sorted by name. It sends no request.
func (f *Factory) Follows() []status.Follow {
	f.mu.Lock()
	followers := slices.Collect(maps.Keys(f.follows))
	f.mu.Unlock()
	all := make([]status.Follow, len(followers))
	for n, follower := range followers {
		all[n] = follower.Status()
	}
	slices.SortFunc(all, func(a, b status.Follow) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// awaitStart waits until the factory has been started, so that its resolver runs. It reports false if the factory is closing or ctx has ended.
func (f *Factory) awaitStart(ctx context.Context) bool {
	select {
	case <-f.started:
	case <-f.closing:
	case <-ctx.Done():
	}
	return closed(f.started) && !closed(f.closing) && ctx.Err() == nil
}

// acquireFollowed returns a lease on gvr, with a separate informer if the shared one has other options.
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

// followedLease is a lease with the interface of package follow.
type followedLease struct{ *Lease }

var _ follow.Lease = followedLease{}

// Changed implements follow.Lease.
func (l followedLease) Changed() <-chan struct{} { return l.entry.changed.Next() }

// Listed implements follow.Lease.
func (l followedLease) Listed() <-chan struct{} { return l.entry.firstList() }

// Waits implements follow.Lease. After a failed watch-list, a list is sent at once, unless the server has requested a pause: the client may
// wait for that internally.
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
	gone, from := now.Ended(end), now.Source
	delivered, waiting := e.informer.Handlers().Progress(l.handlers)
	d := follow.Deletion{Phase: follow.DeletionRunning, Objects: from.Objects, Delivered: delivered}
	emptied := from.Objects == 0 || from.Generation == now.Generation && now.Serving != source.Gone
	switch {
	case l.released.Load(), closed(e.done), !e.hasSynced() && from.Objects == 0:
		d.Phase = follow.DeletionDone
	case !gone && end.Kind == discovery.NotListed:
		d.Phase = follow.DeletionUnknown
	case gone && (e.settings.removal == KeepCache || emptied && !waiting):
		d.Phase = follow.DeletionDone
	}
	return d
}
