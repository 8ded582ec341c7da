package informer

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/handlers"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// ownership is an informer's part in a shard: the source has the objects of the shard's view, handlers are called only for objects that
// the shard owns, and the shard waits for their calls before it lets slots go. A nil ownership is that of an informer without a shard.
type ownership struct {
	sharding.Shard
	gvr      schema.GroupVersionResource
	handlers *handlers.Set
	follower atomic.Pointer[sharding.Follower] // nil: the informer does not run, or the shard does not change
}

// newOwnership configures the source for shard, which may be nil.
func newOwnership(shard sharding.Shard, gvr schema.GroupVersionResource, cfg *source.Config) *ownership {
	if shard == nil {
		return nil
	}
	o := &ownership{Shard: shard, gvr: gvr}
	cfg.Shard = shard
	if member, is := shard.(*sharding.Member); is { // its methods hold no lock for long, and call no code of the user
		cfg.Group = member.Status
	}
	cfg.Loaded = func(generation uint64) { o.follower.Load().Loaded(generation) }
	return o
}

// guard makes the handlers of set ask the shard before each call.
func (o *ownership) guard(set *handlers.Set) {
	if o != nil {
		o.handlers, set.Owner = set, o
	}
}

// Has implements handlers.Owner.
func (o *ownership) Has(uid types.UID) bool { return o.View().Slots.Has(sharding.SlotOf(uid)) }

// run follows the shard until the returned function is called, which the informer does after the last call of a handler. That may be
// after the end of ctx.
func (o *ownership) run(ctx context.Context) (stop func()) {
	if o == nil {
		return func() {}
	}
	follower := o.Follow(o.gvr.String())
	o.follower.Store(follower)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		o.follow(ctx, follower)
	}()
	return func() {
		cancel()
		<-ended
		follower.Stop()
	}
}

// follow lets slots of the shard go, until ctx ends.
func (o *ownership) follow(ctx context.Context, follower *sharding.Follower) {
	for ctx.Err() == nil {
		changed, view := o.Changed(), o.View()
		o.handlers.OwnershipChanged()
		unchanged, cancel := context.WithCancel(ctx)
		quiet := make(chan struct{})
		go func() {
			defer close(quiet)
			if o.handlers.Quiesce(unchanged) == nil {
				follower.LetGo(view.Generation)
			}
		}()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		cancel() // the next view needs the same calls to end
		<-quiet
	}
}
