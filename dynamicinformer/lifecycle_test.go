package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/packed"
	"github.com/gvrkit/gvrkit/sharding"
)

// lifecycle is one sequence of TestFactory_RandomLifecycles.
type lifecycle struct {
	t       *testing.T
	seed    uint64
	cluster *fakecluster.Cluster
	factory *dynamicinformer.Factory
	ctx     context.Context //nolint:containedctx // of Start: steps start the factory and end it
	end     context.CancelFunc
	quiet   atomic.Bool // handlers only record
	begun   atomic.Bool // Start has been called
	closing atomic.Bool // Shutdown or the end of ctx has begun
	closed  atomic.Bool // Shutdown has returned, or the context of Start has ended
	down    atomic.Bool // Shutdown has returned nil
	tasks   sync.WaitGroup
	found   bool // the factory has discovery
	byHand  bool // some informers are run by a program, which need not end with the factory
	early   bool // the factory ends while other goroutines use it
	member  *sharding.Member
	servers *fakecluster.LeaseServer

	mu     sync.Mutex
	random *rand.Rand
	leases []*user
	views  []chan struct{} // the stop channels of views
	pinned map[schema.GroupVersionResource]bool
}

// user is one lease, and its handlers.
type user struct {
	*dynamicinformer.Lease
	in       *lifecycle
	name     string
	number   int
	released atomic.Bool
	recovers bool
	mu       sync.Mutex
	handlers []*calls
}

// calls is a handler of a lease.
type calls struct {
	eventChecker
	in       *lifecycle
	of       *user
	running  atomic.Int32
	removed  atomic.Bool // by a call that has returned; calls that had begun have reached the handler
	over     atomic.Bool // Done of the lease has closed
	handle   cache.ResourceEventHandlerRegistration
	whole    bool // it has each object, unless it is removed
	recovers bool // its panics are recovered
}

// n returns a random number below n.
func (v *lifecycle) n(n int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.random.IntN(n)
}

// pause lets a random time pass.
func (v *lifecycle) pause() {
	time.Sleep([]time.Duration{0, 0, time.Nanosecond, time.Millisecond, 30 * time.Millisecond, time.Second, 7 * time.Second}[v.n(7)])
}

// soon returns a context that ends at any time.
func (v *lifecycle) soon() (context.Context, context.CancelFunc) {
	switch v.n(4) {
	case 0:
		ctx, cancel := context.WithCancel(v.t.Context())
		cancel()
		return ctx, cancel
	case 1:
		return context.WithTimeout(v.t.Context(), time.Nanosecond)
	case 2:
		return context.WithTimeout(v.t.Context(), time.Duration(v.n(3000))*time.Millisecond)
	default:
		return context.WithTimeout(v.t.Context(), time.Duration(v.n(60))*time.Second)
	}
}

// atOnce checks that f does not wait.
func (v *lifecycle) atOnce(what string, f func()) {
	begun := time.Now()
	f()
	if took := time.Since(begun); took != 0 {
		v.t.Errorf("seed %d: %s took %v", v.seed, what, took)
	}
}

// until checks that f does not take longer than ctx lasts.
func (v *lifecycle) until(ctx context.Context, what string, f func()) {
	f()
	if end, ok := ctx.Deadline(); ok && time.Now().After(end) {
		v.t.Errorf("seed %d: %s returned %v after the end of its context", v.seed, what, time.Since(end))
	}
}

// call checks that the handler may be called now. Then it does something that handlers may do.
func (c *calls) call(event string, do func()) {
	if c.running.Add(1) > 1 {
		c.in.t.Errorf("seed %d: two calls of a handler at a time", c.in.seed)
	}
	defer c.running.Add(-1)
	if c.removed.Load() {
		c.in.t.Errorf("seed %d: %s of a handler that was removed", c.in.seed, event)
	}
	if c.over.Load() {
		c.in.t.Errorf("seed %d: %s after Done", c.in.seed, event)
	}
	if c.in.down.Load() {
		c.in.t.Errorf("seed %d: %s after Shutdown", c.in.seed, event)
	}
	do()
	if c.in.quiet.Load() {
		return
	}
	switch c.in.n(14) {
	case 0:
		c.in.pause()
	case 1:
		c.in.release(c.of)
	case 2:
		c.in.remove(c, true)
	case 3:
		c.in.addHandler(c.of)
	case 4:
		c.in.acquire()
	case 5:
		c.in.act()
	case 6:
		if c.recovers {
			panic("x")
		}
	case 7:
		if c.in.early {
			ctx, cancel := c.in.soon()
			defer cancel()
			c.in.closing.Store(true)
			c.in.until(ctx, "Shutdown in a handler", func() {
				if err := c.in.factory.Shutdown(ctx); err == nil {
					c.in.t.Errorf("seed %d: Shutdown returned during a call of a handler", c.in.seed)
				}
			})
			c.in.closed.Store(true)
		}
	}
	if c.over.Load() {
		c.in.t.Errorf("seed %d: Done during %s", c.in.seed, event)
	}
	if c.in.down.Load() {
		c.in.t.Errorf("seed %d: Shutdown has returned during %s", c.in.seed, event)
	}
}

func (c *calls) OnAdd(obj any, initial bool) {
	c.call("OnAdd", func() { c.eventChecker.OnAdd(obj, initial) })
}

func (c *calls) OnUpdate(old, obj any) {
	c.call("OnUpdate", func() { c.eventChecker.OnUpdate(old, obj) })
}

func (c *calls) OnDelete(obj any) { c.call("OnDelete", func() { c.eventChecker.OnDelete(obj) }) }

func (c *calls) OnMoved(obj any) { c.call("OnMoved", func() { c.eventChecker.OnDelete(obj) }) }

// packedCalls is calls for packed objects.
type packedCalls struct{ *calls }

func (p packedCalls) OnAdd(obj *packed.Object, initial bool) { p.calls.OnAdd(obj, initial) }

func (p packedCalls) OnUpdate(old, obj *packed.Object) { p.calls.OnUpdate(old, obj) }

func (p packedCalls) OnDelete(obj cache.DeletedObject[*packed.Object]) {
	p.calls.OnDelete(obj.OptionalObj)
}

var sameTransform cache.TransformFunc = func(obj any) (any, error) { return obj, nil }

// options returns random options of a lease, and its name.
func (v *lifecycle) options() (opts []dynamicinformer.LeaseOption, name string) {
	for range v.n(4) {
		switch v.n(20) {
		case 0, 1:
			opts = append(opts, dynamicinformer.WithLinger(time.Duration(v.n(20))*time.Second))
		case 2:
			opts = append(opts, dynamicinformer.WithSeparateInformer())
		case 3:
			opts = append(opts, dynamicinformer.WithLabelSelector("a!=b"))
		case 4, 5:
			name = fmt.Sprint("owner", v.n(3))
			opts = append(opts, dynamicinformer.WithLeaseName(name))
		case 6:
			opts = append(opts, dynamicinformer.WithCoalescing(v.n(2)))
		case 7:
			opts = append(opts, dynamicinformer.WithHandlerRecovery())
		case 8:
			opts = append(opts, dynamicinformer.WithResync(time.Duration(v.n(2))*time.Second))
		case 9:
			opts = append(opts, dynamicinformer.WithPackedCache())
		case 10:
			opts = append(opts, dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
		case 11:
			opts = append(opts, dynamicinformer.WithNamespaces("ns", "other"))
		case 12:
			opts = append(opts, dynamicinformer.WithTransform(sameTransform))
		case 13:
			opts = append(opts, dynamicinformer.WithIndexers(cache.Indexers{fmt.Sprint("i", v.n(3)): badIndex}))
		case 14, 15:
			opts = append(opts, dynamicinformer.WithAllowAbsent())
		case 16:
			if v.member != nil {
				opts = append(opts, dynamicinformer.WithShard(v.member))
			}
		case 17:
			opts = append(opts, dynamicinformer.WithWatchErrorHandler(func(context.Context, *cache.Reflector, error) {
				if !v.quiet.Load() {
					v.act() //nolint:contextcheck // each step has a context of its own
				}
			}))
		case 18:
			opts = append(opts, dynamicinformer.WithGoType(&typedWidget{}))
		case 19:
			opts = append(opts, dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache))
		}
	}
	return opts, name
}

func (v *lifecycle) gvr() schema.GroupVersionResource {
	return []schema.GroupVersionResource{widgets, widgets, blocks, gadgets}[v.n(4)]
}

// acquire acquires a lease with random options; nil: that has failed for a reason that it may have.
func (v *lifecycle) acquire() *user {
	opts, name := v.options()
	ctx, cancel := v.soon()
	defer cancel()
	gvr, down := v.gvr(), v.closed.Load()
	recovers := v.n(3) == 0
	if recovers {
		opts = append(opts, dynamicinformer.WithHandlerRecovery())
	}
	if gvr == blocks && !v.found {
		opts = append(opts, dynamicinformer.WithNamespace(""))
	}
	var l *dynamicinformer.Lease
	var err error
	v.until(ctx, "Acquire", func() {
		if v.found && v.n(5) == 0 {
			l, err = v.factory.AcquireRef(ctx, gvr.Resource, opts...)
		} else {
			l, err = v.factory.Acquire(ctx, gvr, opts...)
		}
	})
	if (l == nil) == (err == nil) {
		v.t.Errorf("seed %d: Acquire returned %v, %v", v.seed, l, err)
	}
	if down && !errors.Is(err, dynamicinformer.ErrShutDown) {
		v.t.Errorf("seed %d: Acquire after the end: %v", v.seed, err)
	}
	if err != nil {
		allowed := errors.Is(err, dynamicinformer.ErrConflict) || errors.Is(err, dynamicinformer.ErrShutDown) || ctx.Err() != nil ||
			errors.Is(err, discovery.ErrNotServed) || errors.Is(err, discovery.ErrInconclusive)
		if !allowed {
			v.t.Errorf("seed %d: Acquire: %v", v.seed, err)
		}
		return nil
	}
	made := &user{recovers: recovers, Lease: l, in: v, name: name}
	v.mu.Lock()
	v.leases = append(v.leases, made)
	made.number = len(v.leases)
	v.mu.Unlock()
	v.tasks.Go(func() { made.watchDone() })
	return made
}

// watchDone checks that no call is in progress when Done closes, and that none begins later.
func (l *user) watchDone() {
	<-l.Done()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.released.Load() && !l.in.closing.Load() && !l.in.viewsEnded() && !l.in.byHand {
		l.in.t.Errorf("seed %d: Done of a lease that was not released", l.in.seed)
	}
	for _, c := range l.handlers {
		if n := c.running.Load(); n != 0 {
			l.in.t.Errorf("seed %d: Done during a call", l.in.seed)
		}
		c.over.Store(true)
	}
}

// viewsEnded reports whether informers may have ended because a stop channel of DropIn has closed.
func (v *lifecycle) viewsEnded() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, stop := range v.views {
		select {
		case <-stop:
			return true
		default:
		}
	}
	return false
}

func (v *lifecycle) any() *user {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.leases) == 0 {
		return nil
	}
	return v.leases[v.random.IntN(len(v.leases))]
}

func (v *lifecycle) release(l *user) {
	l.released.Store(true)
	v.atOnce("Release", l.Release)
	for _, c := range l.all() {
		v.later(c)
	}
}

// later marks a handler as removed when calls that had begun have reached it.
func (v *lifecycle) later(c *calls) {
	v.tasks.Go(func() {
		time.Sleep(time.Nanosecond)
		c.removed.Store(true)
	})
}

func (l *user) all() []*calls {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.handlers)
}

func (v *lifecycle) addHandler(l *user) {
	c := &calls{eventChecker: eventChecker{t: v.t, is: map[string]string{}, resyncs: true}, in: v, of: l, recovers: l.recovers}
	l.mu.Lock()
	if l.released.Load() {
		l.mu.Unlock()
		return
	}
	c.whole = true
	l.handlers = append(l.handlers, c)
	l.mu.Unlock()
	var handle cache.ResourceEventHandlerRegistration
	var err error
	v.atOnce("AddEventHandler", func() {
		var opts cache.HandlerOptions
		if v.n(4) == 0 {
			period := time.Duration(v.n(5)) * time.Second
			opts.ResyncPeriod = &period
		}
		if v.n(3) == 0 {
			if handle, err = l.AddPackedHandler(packedCalls{c}, opts); !errors.Is(err, dynamicinformer.ErrInvalidOption) {
				return
			}
		}
		if v.n(2) == 0 {
			handle, err = l.Informer().AddEventHandlerWithOptions(c, opts)
			return
		}
		handle, err = l.AddEventHandlerWithOptions(c, opts)
	})
	if (handle == nil) == (err == nil) {
		v.t.Errorf("seed %d: AddEventHandler: %v, %v", v.seed, handle, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if !l.released.Load() && !v.closing.Load() && !v.viewsEnded() && !v.byHand {
			v.t.Errorf("seed %d: AddEventHandler: %v", v.seed, err)
		}
		c.whole = false
		return
	}
	c.handle = handle
}

func (v *lifecycle) remove(c *calls, self bool) {
	c.of.mu.Lock()
	handle := c.handle
	c.of.mu.Unlock()
	if handle == nil {
		return
	}
	c.of.mu.Lock()
	c.whole = false
	c.of.mu.Unlock()
	v.atOnce("RemoveEventHandler", func() {
		if err := c.of.RemoveEventHandler(handle); err != nil {
			v.t.Errorf("seed %d: RemoveEventHandler: %v", v.seed, err)
		}
	})
	v.later(c)
	if !self && v.n(4) == 0 {
		v.tasks.Go(func() {
			if err := cache.ShutDownEventHandler(c.of.Informer(), handle); err != nil {
				v.t.Errorf("seed %d: ShutDownEventHandler: %v", v.seed, err)
			}
			if c.running.Load() != 0 {
				v.t.Errorf("seed %d: ShutDownEventHandler returned during a call", v.seed)
			}
		})
	}
}

// act does something that takes no longer than a context.
func (v *lifecycle) act() {
	l := v.any()
	if l == nil {
		return
	}
	ctx, cancel := v.soon()
	defer cancel()
	switch v.n(13) {
	case 0:
		v.until(ctx, "WaitForSync", func() { _ = l.WaitForSync(ctx) })
	case 1:
		v.until(ctx, "Factory.WaitForSync", func() { _ = v.factory.WaitForSync(ctx) })
	case 2:
		v.until(ctx, "AtLeast", func() { _ = l.AtLeast(ctx, fmt.Sprint(v.n(100))) })
	case 3:
		v.until(ctx, "Watch", func() {
			for range l.Watch(ctx) {
				if v.n(10) == 0 {
					break
				}
			}
		})
	case 4:
		v.atOnce("Status", func() { _, _ = v.factory.Status(), v.factory.Explain(l.Resource().GVR) })
	case 5:
		v.atOnce("Retry", l.Retry)
	case 6:
		v.atOnce("SetNamespaces", func() {
			err := l.SetNamespaces([]string{"ns", "other", "third"}[v.n(3)])
			if err != nil && !errors.Is(err, dynamicinformer.ErrReleased) && !errors.Is(err, dynamicinformer.ErrInvalidOption) {
				v.t.Errorf("seed %d: SetNamespaces: %v", v.seed, err)
			}
		})
	case 7:
		v.atOnce("Lister", func() { _, _ = l.Unstructured().List(nil); _, _ = l.Lister().Get("ns/w0") })
	case 8:
		_ = v.factory.Readyz().Check(nil)
		_ = v.factory.Healthz().Check(nil)
		_ = v.factory.Follows()
	case 9:
		v.atOnce("ForResource", func() { v.pin(v.gvr()) })
	case 10:
		v.follow(ctx)
	case 11:
		v.until(ctx, "WaitForCacheSync", func() { v.factory.DropIn().WaitForCacheSync(ctx.Done()) })
	case 12:
		if v.byHand {
			i := v.factory.ForResource(v.gvr()).Informer()
			v.tasks.Go(func() {
				ctx, cancel := v.soon()
				defer cancel()
				i.RunWithContext(ctx)
			})
		}
	}
}

func (v *lifecycle) pin(gvr schema.GroupVersionResource) {
	if v.seed%2 == 0 {
		return
	}
	v.mu.Lock()
	v.pinned[gvr] = true
	v.mu.Unlock()
	if v.n(2) == 0 {
		v.factory.DropIn().ForResource(gvr)
		return
	}
	v.factory.ForResource(gvr)
}

func (v *lifecycle) step() {
	switch v.n(16) {
	case 0, 1, 2:
		if l := v.acquire(); l != nil {
			v.addHandler(l)
		}
	case 3, 4:
		if l := v.any(); l != nil {
			v.addHandler(l)
		}
	case 5, 6, 7:
		if l := v.any(); l != nil {
			v.release(l)
		}
	case 8:
		if l := v.any(); l != nil {
			if all := l.all(); len(all) > 0 {
				v.remove(all[v.n(len(all))], false)
			}
		}
	case 9, 10, 11:
		v.change()
	case 12, 13:
		v.act()
	case 14:
		if v.seed%2 == 1 {
			stop := make(chan struct{})
			v.factory.DropIn().Start(stop)
			v.mu.Lock()
			v.views = append(v.views, stop)
			v.mu.Unlock()
			v.tasks.Go(func() {
				time.Sleep(time.Duration(v.n(60)) * time.Second)
				close(stop)
			})
		}
	case 15:
		if v.seed%3 != 0 {
			v.begun.Store(true)
			v.atOnce("Start", func() { v.factory.Start(v.ctx) })
		}
	}
}

// Calls of a factory and of its leases come in any order, from several goroutines and from handlers.
func TestFactory_RandomLifecycles(t *testing.T) {
	for seed := range uint64(fewer(40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { randomLifecycle(t, seed) }) })
	}
}

func randomLifecycle(t *testing.T, seed uint64) {
	t.Helper()
	v := &lifecycle{t: t, seed: seed, cluster: fakecluster.New(widgetType, blockType, gadgetType), random: rand.New(rand.NewPCG(seed, 33)), pinned: map[schema.GroupVersionResource]bool{}}
	var opts []dynamicinformer.Option
	if v.found = v.n(3) > 0; v.found {
		opts = append(opts, withDiscovery(t, v.cluster))
	}
	if v.n(2) == 0 {
		opts = append(opts, dynamicinformer.WithListConcurrency(1))
	}
	if v.n(3) == 0 {
		opts = append(opts, dynamicinformer.WithMemoryBudget(1<<20), dynamicinformer.WithBudgetPolicy(dynamicinformer.PackOverBudget))
	}
	v.byHand = seed%8 == 7
	if seed%4 == 2 {
		v.servers = fakecluster.NewLeaseServer()
		v.cluster.Shard(v.n(2) == 0)
		member, err := sharding.Join(v.t.Context(), v.servers.Client(), sharding.Config{Namespace: "ns", Name: "widgets", Identity: "a"})
		if err != nil {
			t.Fatal(err)
		}
		v.member = member
		v.tasks.Go(func() {
			for range 3 {
				time.Sleep(time.Duration(v.n(60)) * time.Second)
				other, err := sharding.Join(v.t.Context(), v.servers.Client(), sharding.Config{Namespace: "ns", Name: "widgets", Identity: "b"})
				if err != nil {
					t.Error(err)
				}
				time.Sleep(time.Duration(v.n(60)) * time.Second)
				if err := other.Leave(v.t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	identity, err := cache.NewInformerName(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer identity.Release()
	opts = append(opts, dynamicinformer.WithInformerMetrics(identity, nil))
	v.factory = newFactory(t, v.cluster, opts...)
	v.ctx, v.end = context.WithCancel(t.Context())
	defer v.end()
	if v.n(4) > 0 {
		v.begun.Store(true)
		v.factory.Start(v.ctx)
	}
	v.early = v.n(2) == 0
	var actors sync.WaitGroup
	for range 1 + v.n(5) {
		actors.Go(func() {
			for range 60 {
				v.step()
				v.pause()
			}
		})
	}
	if v.early {
		time.Sleep(time.Duration(v.n(40)) * time.Second)
		v.finish()
	}
	actors.Wait()
	v.cluster.Intercept(nil)
	v.quiet.Store(true)
	time.Sleep(time.Hour)
	synctest.Wait()
	if !v.early {
		if !v.byHand {
			v.rest()
		}
		v.finish()
	}
	v.tasks.Wait()
	v.after()
}
