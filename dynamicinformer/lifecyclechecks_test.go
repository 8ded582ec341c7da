package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// follow calls Follow until ctx ends.
func (v *lifecycle) follow(ctx context.Context) {
	if !v.found {
		return
	}
	var ended atomic.Bool
	var calls atomic.Int32
	call := func() {
		if ended.Load() {
			v.t.Errorf("seed %d: a callback of Follow after its end", v.seed)
		}
		v.pause()
	}
	opts, _ := v.options()
	err := v.factory.Follow(ctx, discovery.Selector{}, dynamicinformer.FollowFuncs{
		Started: func(l *dynamicinformer.Lease) {
			calls.Add(1)
			call()
			if v.n(2) == 0 {
				_, err := l.AddEventHandler(&followed{v: v, ended: &ended})
				if err != nil && !v.closing.Load() && ctx.Err() == nil && !errors.Is(err, dynamicinformer.ErrReleased) && !v.viewsEnded() {
					v.t.Errorf("seed %d: a handler in Started: %v", v.seed, err)
				}
			}
			if v.n(4) == 0 {
				l.Release()
			}
		},
		Stopped: func(discovery.Resource, discovery.Evidence) {
			calls.Add(-1)
			call()
		},
	}, dynamicinformer.WithLeaseOptions(opts...), dynamicinformer.WithTypeLimit(v.n(3)), dynamicinformer.WithStartLimit(v.n(3)))
	ended.Store(true)
	if n := calls.Load(); n != 0 {
		v.t.Errorf("seed %d: %d more calls of Started than of Stopped", v.seed, n)
	}
	over := ctx.Err() != nil
	if deadline, is := ctx.Deadline(); err != nil && is && time.Now().Equal(deadline) {
		over = false // ctx may have ended after Follow has returned, at the same instant
	}
	if (err != nil) == over || err != nil && !errors.Is(err, dynamicinformer.ErrShutDown) {
		v.t.Errorf("seed %d: Follow: %v, context: %v", v.seed, err, ctx.Err())
	}
}

// followed is a handler of a lease of Follow.
type followed struct {
	v     *lifecycle
	ended *atomic.Bool
}

func (c *followed) call() {
	if c.v.quiet.Load() {
		return
	}
	if c.v.n(5) == 0 {
		c.v.pause()
	}
}

func (c *followed) OnAdd(any, bool) { c.call() }

func (c *followed) OnUpdate(_, _ any) { c.call() }

func (c *followed) OnDelete(any) { c.call() }

// change changes the cluster.
func (v *lifecycle) change() {
	name := fmt.Sprint("w", v.n(5))
	ctx := v.t.Context()
	gvr := v.gvr()
	client := v.cluster.Resource(gvr).Namespace(map[bool]string{true: "ns", false: ""}[gvr != blocks])
	switch v.n(12) {
	case 0, 1, 2:
		_, _ = client.Create(ctx, newObject(name, nil), metav1.CreateOptions{})
	case 3, 4:
		if o, err := client.Get(ctx, name, metav1.GetOptions{}); err == nil {
			o.SetLabels(map[string]string{"n": fmt.Sprint(v.n(100))})
			_, _ = client.Update(ctx, o, metav1.UpdateOptions{})
		}
	case 5:
		_ = client.Delete(ctx, name, metav1.DeleteOptions{})
	case 6:
		v.cluster.CloseWatches(gvr)
	case 7:
		v.cluster.Expire(gvr)
	case 8:
		v.cluster.Withdraw(gadgets)
	case 9:
		v.cluster.Serve(gadgetType)
	case 10:
		hang, discovers := v.gvr(), v.n(4) == 0
		v.cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR == hang && (req.Verb == "list" || req.Verb == "watch") || req.Verb == fakecluster.VerbDiscover && discovers {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
	case 11:
		v.cluster.Intercept(nil)
	}
}

var gadgetType = fakecluster.Type{GVR: gadgets, Kind: "Gadget", Namespaced: true}

// finish ends the factory in one of several ways.
func (v *lifecycle) finish() {
	if v.n(2) == 0 {
		v.closing.Store(true)
		begun := v.begun.Load()
		v.end()
		if begun {
			time.Sleep(time.Nanosecond)
			v.closed.Store(true)
		}
		v.pause()
	}
	for {
		v.closing.Store(true)
		ctx, cancel := v.soon()
		var err error
		v.until(ctx, "Shutdown", func() { err = v.factory.Shutdown(ctx) })
		cancel()
		v.closed.Store(true)
		if err == nil {
			break
		}
		if _, is := errors.AsType[*dynamicinformer.ShutdownError](err); !is || ctx.Err() == nil {
			v.t.Errorf("seed %d: Shutdown: %v", v.seed, err)
		}
		time.Sleep(time.Second)
	}
	for _, l := range v.all() {
		for _, c := range l.all() {
			if c.running.Load() != 0 {
				v.t.Errorf("seed %d: Shutdown has returned during a call", v.seed)
			}
		}
	}
	v.down.Store(true)
	if v.member != nil {
		ctx, cancel := context.WithTimeout(v.t.Context(), time.Second)
		defer cancel()
		if err := v.member.Leave(ctx); err != nil {
			v.t.Errorf("seed %d: Leave after Shutdown: %v", v.seed, err)
		}
	}
	if n := v.open(); n != 0 && !v.byHand {
		v.t.Errorf("seed %d: %d open watches after Shutdown", v.seed, n)
	}
}

func (v *lifecycle) all() []*user {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.leases)
}

func (v *lifecycle) open() (n int) {
	for _, gvr := range []schema.GroupVersionResource{widgets, blocks, gadgets} {
		n += v.cluster.OpenWatches(gvr)
	}
	return n
}

// rest checks what a factory has that is idle.
func (v *lifecycle) rest() {
	if !v.begun.Load() {
		return
	}
	v.cluster.Serve(gadgetType)
	v.cluster.CloseWatches(widgets)
	_, _ = v.cluster.Resource(widgets).Namespace("ns").Create(v.t.Context(), newObject("last", nil), metav1.CreateOptions{})
	time.Sleep(time.Hour)
	synctest.Wait()
	owners, got := map[string]int{}, map[string]int{}
	ids, dead := map[uint64]bool{}, map[uint64]bool{}
	for _, l := range v.all() {
		select {
		case <-l.Done():
			if l.released.Load() {
				continue
			}
			if !v.viewsEnded() {
				v.t.Errorf("seed %d: the informer of a lease has ended that was not released", v.seed)
			}
			s := l.Status()
			dead[s.ID] = true
			continue
		default:
		}
		if l.released.Load() {
			v.t.Errorf("seed %d: a released lease is not done", v.seed)
			continue
		}
		s := l.Status()
		key := fmt.Sprintf("%s %d %q", s.GVR.Resource, s.ID, l.name)
		owners[key]++
		ids[s.ID] = true
		if s.State != status.StateSynced && (s.State != status.StateDegraded || s.Reason != status.ReasonIndexFailed) {
			v.t.Errorf("seed %d: %v", v.seed, s)
		}
		objects := l.Informer().GetStore().List()
		has := map[string]string{}
		for _, item := range objects {
			o := item.(metav1.Object)
			has[o.GetNamespace()+"/"+o.GetName()] = string(o.GetUID())
		}
		for _, c := range l.all() {
			c.of.mu.Lock()
			whole := c.whole
			c.of.mu.Unlock()
			if !whole {
				continue
			}
			c.mu.Lock()
			if diff := cmp.Diff(has, c.is); diff != "" {
				v.t.Errorf("seed %d: %v: a handler of %d (-cache +handler):\n%s", v.seed, s, l.number, diff)
			}
			for _, p := range c.problems {
				v.t.Errorf("seed %d: %v: %s", v.seed, s, p)
			}
			c.mu.Unlock()
		}
		want := map[string]string{}
		for _, ns := range namespacesOf(&s) {
			list, err := v.cluster.Resource(s.Resource.GVR).Namespace(ns).List(v.t.Context(), metav1.ListOptions{})
			if err != nil {
				v.t.Errorf("%v: %v", s, err)
				continue
			}
			for _, o := range list.Items {
				want[o.GetNamespace()+"/"+o.GetName()] = string(o.GetUID())
			}
		}
		if diff := cmp.Diff(want, has); diff != "" {
			v.t.Errorf("seed %d: %v (-server +cache):\n%s", v.seed, s, diff)
		}
	}
	for _, s := range v.factory.Status() {
		if dead[s.ID] {
			continue
		}
		if !s.Pinned && !ids[s.ID] {
			v.t.Errorf("seed %d: an informer without users: %v", v.seed, s)
		}
		for _, o := range s.Owners {
			got[fmt.Sprintf("%s %d %q", s.GVR.Resource, s.ID, o.Name)] = o.Leases
		}
	}
	if diff := cmp.Diff(owners, got); diff != "" {
		v.t.Errorf("seed %d: owners (-want +got):\n%s", v.seed, diff)
	}
}

func namespacesOf(s *status.Informer) (names []string) {
	if s.Namespaces == nil {
		return []string{""}
	}
	for _, n := range s.Namespaces {
		names = append(names, n.Name)
	}
	return names
}

// after checks what is left after Shutdown.
func (v *lifecycle) after() {
	for _, gvr := range []schema.GroupVersionResource{widgets, blocks, gadgets} {
		before := len(v.cluster.Requests("list", gvr)) + len(v.cluster.Requests("watch", gvr))
		time.Sleep(time.Hour)
		if more := len(v.cluster.Requests("list", gvr)) + len(v.cluster.Requests("watch", gvr)) - before; more != 0 && !v.byHand {
			v.t.Errorf("seed %d: %d requests after Shutdown", v.seed, more)
		}
	}
	for _, l := range v.all() {
		if !isDone(l.Lease) {
			v.t.Errorf("seed %d: a lease is not done after Shutdown", v.seed)
		}
		if s := l.Status(); s.State != status.StateStopped {
			v.t.Errorf("seed %d: after Shutdown: %v", v.seed, s)
		}
		v.atOnce("Release", l.Release)
	}
	if _, err := v.factory.Acquire(v.t.Context(), widgets); !errors.Is(err, dynamicinformer.ErrShutDown) {
		v.t.Errorf("seed %d: Acquire after Shutdown: %v", v.seed, err)
	}
}
