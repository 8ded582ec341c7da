package leases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/churn"
)

// following is a call of Factory.Follow. It adds a handler to the lease on each type that is started.
type following struct {
	name  string
	types []string // that it selects
	stop  context.CancelFunc
	ends  atomic.Bool // it has been stopped, or its factory shuts down
	ended chan struct{}

	mu      sync.Mutex // never held during a call of the library
	started map[string]*lease
}

// follow begins to follow types.
func (s *subject) follow(ctx context.Context, op churn.Op) {
	f := &following{name: op.Arg("following"), types: op.List("types"), ended: make(chan struct{}), started: map[string]*lease{}}
	if f.types == nil {
		f.types = []string{"t1", "t2"}
	}
	s.mu.Lock()
	_, exists := s.follows[f.name]
	if !exists {
		s.follows[f.name] = f
	}
	s.mu.Unlock()
	if exists {
		return
	}
	var selected discovery.Selector
	for _, typ := range f.types {
		gvr := s.env.World.Resource(typ, "")
		switch op.With["by"] {
		case "kind":
			selected.Names = append(selected.Names, strings.ToUpper(typ[:1])+typ[1:]+"."+gvr.Group)
		case "plural":
			selected.Names = append(selected.Names, gvr.GroupResource().String())
		default:
			selected.Resources = append(selected.Resources, gvr.GroupResource())
		}
	}
	funcs := dynamicinformer.FollowFuncs{
		Started: func(l *dynamicinformer.Lease) { s.startedFollowing(f, l) },
		Stopped: func(res discovery.Resource, _ discovery.Evidence) { s.stoppedFollowing(f, res) },
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	factory := s.factory
	go func() {
		defer close(f.ended)
		err := factory.Follow(ctx, selected, funcs, dynamicinformer.WithLeaseOptions(dynamicinformer.WithLeaseName(f.name)))
		if err != nil && !errors.Is(err, dynamicinformer.ErrShutDown) {
			s.report(churn.Status, "%s: %v", op, err)
		}
	}()
}

// typeOf returns the type of a script whose resource gvr is.
func typeOf(gvr schema.GroupVersionResource) string { return strings.TrimSuffix(gvr.Resource, "s") }

func (s *subject) startedFollowing(f *following, l *dynamicinformer.Lease) {
	typ := typeOf(l.Resource().GVR)
	name := f.name + "/" + typ
	h := &handler{Recorder: &churn.Recorder{View: churn.View{Name: name, Type: typ}, Since: time.Now()}, registered: make(chan struct{})}
	followed := &lease{Lease: l, name: name, owner: f.name, view: h.View, handlers: map[string]*handler{"follow": h}}
	s.mu.Lock()
	s.recorders = append(s.recorders, h.Recorder)
	s.mu.Unlock()
	var err error
	if h.registration, err = l.AddEventHandler(h); err != nil && !errors.Is(err, dynamicinformer.ErrReleased) {
		s.report(churn.Status, "%s: add a handler: %v", name, err)
	}
	close(h.registered)
	f.mu.Lock()
	before := f.started[typ]
	f.started[typ] = followed
	f.mu.Unlock()
	if before != nil {
		s.report(churn.Status, "%s: Started is called twice without Stopped", name)
	}
}

func (s *subject) stoppedFollowing(f *following, res discovery.Resource) {
	typ := typeOf(res.GVR)
	if s.env.World.Exists(typ, res.CRDUID) && !f.ends.Load() {
		s.report(churn.Justified, "%s/%s: Stopped is called, and the CRD with UID %s exists", f.name, typ, res.CRDUID)
	}
	f.mu.Lock()
	before := f.started[typ]
	delete(f.started, typ)
	f.mu.Unlock()
	if before == nil {
		s.report(churn.Status, "%s/%s: Stopped is called without Started", f.name, typ)
		return
	}
	for _, h := range before.handlers {
		h.Removed(1) // it may have begun before the release
	}
}

// unfollow ends a call of Follow, which ends its leases before it returns.
func (s *subject) unfollow(name string) {
	s.mu.Lock()
	f := s.follows[name]
	delete(s.follows, name)
	s.mu.Unlock()
	if f != nil {
		f.ends.Store(true)
		f.stop()
		s.awaitEnd(f)
	}
}

// awaitEnd waits until Follow returns.
func (s *subject) awaitEnd(f *following) {
	select {
	case <-f.ended:
	case <-time.After(20 * time.Second):
		s.report(churn.Released, "%s: Follow has not returned after 20 s", f.name)
		return
	}
	if left := f.now(); len(left) > 0 {
		s.report(churn.Released, "%s: Follow has returned, and Stopped was not called for %v", f.name, slices.Sorted(maps.Keys(left)))
	}
}

// now returns the leases on the types that are started.
func (f *following) now() map[string]*lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.started)
}

// allFollowing returns the calls of Follow, sorted by name.
func (s *subject) allFollowing() []*following {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*following
	for _, name := range slices.Sorted(maps.Keys(s.follows)) {
		all = append(all, s.follows[name])
	}
	return all
}

// followingAtRest compares what a call of Follow has started with what the server serves. While the server of the types is down,
// discovery can't tell what it serves.
func (s *subject) followingAtRest(ctx context.Context, f *following) []churn.Violation {
	var found []churn.Violation
	started := f.now()
	for _, typ := range f.types {
		_, n := s.env.World.Incarnation(typ)
		l := started[typ]
		switch {
		case s.env.World.Down():
		case n >= 0 && l == nil:
			found = append(found, churn.Violation{Invariant: churn.Equal, Text: fmt.Sprintf("%s does not follow %s, which is served", f.name, typ)})
		case n < 0 && l != nil:
			found = append(found, churn.Violation{Invariant: churn.Equal, Text: fmt.Sprintf("%s follows %s, which is not served", f.name, typ)})
		}
		if l != nil && n >= 0 {
			found = append(found, s.atRest(ctx, l)...)
		}
	}
	for typ := range started {
		if !slices.Contains(f.types, typ) {
			found = append(found, churn.Violation{Invariant: churn.Equal, Text: fmt.Sprintf("%s follows %s, which it does not select", f.name, typ)})
		}
	}
	return found
}
