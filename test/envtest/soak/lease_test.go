package soak_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/packed"
	"github.com/gvrkit/gvrkit/status"
)

// program is the program under test: a factory, with leases that come and go.
type program struct {
	factory *dynamicinformer.Factory
	result  *result

	mu       sync.Mutex // never held during a call of the library
	leases   map[*lease]bool
	followed map[schema.GroupVersionResource]*lease
}

// lease is a lease that has not been released.
type lease struct {
	*dynamicinformer.Lease
	view   view
	packed bool // its cache

	mu         sync.Mutex // never held during a call of the library
	namespaces []string   // nil: all
	handlers   []*handler
}

// describe describes the informer.
func (l *lease) describe() string {
	at := l.Status()
	return fmt.Sprintf("%v, generation %d, version %s", at, at.Generation, at.ResourceVersion)
}

// forms are the kinds of leases.
var forms = []string{"whole", "packed", "selector", "metadata", "namespaces", "typed", "coalescing"}

// behaviours are the kinds of handlers.
var behaviours = []string{"quick", "slow", "panicking", "calling"}

// acquire acquires a lease with handlers. It returns nil if discovery does not respond in time.
func (p *program) acquire(ctx context.Context, of *ledger, form string, opts ...dynamicinformer.LeaseOption) *lease {
	l := &lease{view: view{name: form + " " + of.gvr.Resource, of: of, example: &unstructured.Unstructured{}}}
	opts = append(opts, dynamicinformer.WithAllowAbsent(), dynamicinformer.WithHandlerRecovery(), dynamicinformer.WithLeaseName(form))
	switch form {
	case "packed":
		l.packed = true
		opts = append(opts, dynamicinformer.WithPackedCache(), dynamicinformer.WithSeparateInformer())
	case "selector":
		l.view.color = "red"
		opts = append(opts, dynamicinformer.WithLabelSelector(colorLabel+"=red"), dynamicinformer.WithSeparateInformer())
	case "metadata":
		l.view.example = &metav1.PartialObjectMetadata{}
		opts = append(opts, dynamicinformer.WithMetadataOnly())
	case "namespaces":
		l.view.set, l.namespaces = true, []string{"a", "b"}
		opts = append(opts, dynamicinformer.WithNamespaces("a", "b"), dynamicinformer.WithSeparateInformer())
	case "typed":
		l.view.example = &boat{}
		opts = append(opts, dynamicinformer.WithGoType(&boat{}))
	case "coalescing":
		l.view.merged = true
		opts = append(opts, dynamicinformer.WithCoalescing(0))
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var err error
	if l.Lease, err = p.factory.Acquire(ctx, of.gvr, opts...); err != nil {
		p.result.showError("the error of Acquire", err)
		if !errors.Is(err, context.DeadlineExceeded) { // discovery hangs
			p.result.report("acquire %s: %v", l.view.name, err)
		}
		return nil
	}
	p.result.acquired.Add(1)
	p.result.note(of.gvr.Resource, "acquired %s, informer %d", l.view.name, l.Status().ID)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases[l] = true
	return l
}

// handle adds a handler to a lease.
func (p *program) handle(l *lease, behaviour string) {
	v := l.view
	v.name += ", " + behaviour
	h := newHandler(v, p.result, l.describe)
	delay := 2 * time.Millisecond
	if v.merged {
		delay = 50 * time.Millisecond
	}
	switch behaviour {
	case "slow":
		h.call = func(int) { <-time.After(delay) }
	case "panicking":
		h.call = func(n int) {
			if n%7 == 0 {
				panic(fmt.Sprintf("call %d of %s", n, v.name))
			}
		}
	case "calling":
		h.call = func(n int) { p.within(l, n) }
	}
	l.mu.Lock()
	l.handlers = append(l.handlers, h)
	l.mu.Unlock()
	var err error
	if l.packed && behaviour == "quick" {
		h.view.example = &packed.Object{}
		_, err = l.AddPackedHandler(packedHandler{h}, cache.HandlerOptions{})
	} else {
		_, err = l.AddEventHandler(h)
	}
	if err != nil && !errors.Is(err, dynamicinformer.ErrReleased) { // Follow has released it
		p.result.report("add a handler to %s: %v", l.view.name, err)
	}
}

// within calls the library in a call of a handler of a lease.
func (p *program) within(l *lease, n int) {
	switch n % 12 {
	case 1:
		p.factory.Status()
	case 3:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) //nolint:forbidigo // a handler has no context
		defer cancel()
		opts := []dynamicinformer.LeaseOption{dynamicinformer.WithAllowAbsent()}
		if n%24 == 3 {
			opts = append(opts, dynamicinformer.WithSeparateInformer())
		}
		other, err := p.factory.Acquire(ctx, l.view.of.gvr, opts...)
		p.result.showError("the error of Acquire", err)
		if err == nil {
			p.result.acquired.Add(1)
			other.Release()
		}
	case 5:
		p.factory.Explain(l.view.of.gvr)
	case 7:
		l.Retry()
	case 9:
		_, err := l.Lister().List(labels.Everything()) // a set of namespaces may not be complete
		p.result.showError("the error of a lister", err)
	case 11:
		l.mu.Lock()
		few := len(l.handlers) < 4
		l.mu.Unlock()
		if few {
			p.handle(l, "quick")
		}
	}
}

// release releases a lease, and waits for the last calls of its handlers.
func (p *program) release(l *lease) {
	p.mu.Lock()
	delete(p.leases, l)
	p.mu.Unlock()
	p.result.note(l.view.of.gvr.Resource, "release %s, informer %d", l.view.name, l.Status().ID)
	l.Release()
	p.ended(l)
}

// ended waits for the last calls of the handlers of a lease that has been released.
func (p *program) ended(l *lease) {
	select {
	case <-l.Done():
	case <-time.After(30 * time.Second):
		p.result.report("%s: a handler is called 30 s after the release", l.view.name)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.handlers {
		h.remove()
	}
}

// keep acquires a lease that is held until the end of the round. Its form and its handlers depend on n.
func (p *program) keep(ctx context.Context, n int, of *ledger) {
	for !closed(p.result.failed) {
		if l := p.acquire(ctx, of, forms[n%len(forms)]); l != nil {
			p.handle(l, "quick")                       //nolint:contextcheck // handlers have no context
			p.handle(l, behaviours[n%len(behaviours)]) //nolint:contextcheck // handlers have no context
			return
		}
	}
}

// visit acquires leases, uses each for a while, and releases it, until stop closes. It does not release the last one.
func (p *program) visit(ctx context.Context, stop <-chan struct{}, r *rand.Rand, ledgers []*ledger) {
	for !closed(stop) {
		var opts []dynamicinformer.LeaseOption
		switch r.IntN(4) {
		case 0:
			opts = append(opts, dynamicinformer.WithLinger(time.Duration(r.IntN(500))*time.Millisecond))
		case 1:
			opts = append(opts, dynamicinformer.WithSeparateInformer())
		}
		l := p.acquire(ctx, pick(r, ledgers...), pick(r, forms...), opts...)
		if l == nil {
			wait(stop, time.Second)
			continue
		}
		for range r.IntN(3) {
			p.handle(l, pick(r, behaviours...)) //nolint:contextcheck // handlers have no context
		}
		wait(stop, time.Duration(r.IntN(1500))*time.Millisecond)
		if l.view.set {
			p.setNamespaces(l, pick(r, []string{"a"}, []string{"b", "c"}, []string{"a", "b", "c"}))
		}
		wait(stop, time.Duration(r.IntN(1500))*time.Millisecond)
		if !closed(stop) {
			p.release(l)
		}
	}
}

func (p *program) setNamespaces(l *lease, names []string) {
	l.mu.Lock()
	l.namespaces = names
	l.mu.Unlock()
	p.result.note(l.view.of.gvr.Resource, "namespaces %v of informer %d", names, l.Status().ID)
	if err := l.SetNamespaces(names...); err != nil {
		p.result.report("%s: set the namespaces: %v", l.view.name, err)
	}
}

// follow follows all types of the group until ctx ends.
func (p *program) follow(ctx context.Context, ledgers []*ledger) {
	of := map[schema.GroupVersionResource]*ledger{}
	for _, l := range ledgers {
		of[l.gvr] = l
	}
	err := p.factory.Follow(ctx, discovery.Selector{Groups: []string{group}}, dynamicinformer.FollowFuncs{
		Started: func(held *dynamicinformer.Lease) { //nolint:contextcheck // handlers have no context
			gvr := held.Status().GVR
			l := &lease{Lease: held, view: view{name: "followed " + gvr.Resource, of: of[gvr], example: &unstructured.Unstructured{}}}
			p.mu.Lock()
			p.followed[gvr] = l
			p.leases[l] = true
			p.mu.Unlock()
			p.handle(l, "quick")
		},
		Stopped: func(res discovery.Resource, _ discovery.Evidence) {
			p.mu.Lock()
			l := p.followed[res.GVR]
			delete(p.followed, res.GVR)
			delete(p.leases, l)
			p.mu.Unlock()
			p.ended(l)
		},
	}, dynamicinformer.WithLeaseOptions(dynamicinformer.WithVersionPolicy(discovery.Exact())))
	if err != nil {
		p.result.report("Follow: %v", err)
	}
}

// all returns the leases.
func (p *program) all() []*lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*lease
	for l := range p.leases {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *lease) int { return cmp.Compare(a.view.name, b.view.name) })
	return all
}

// isFollowed reports whether there is a lease of Follow on a type.
func (p *program) isFollowed(gvr schema.GroupVersionResource) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.followed[gvr] != nil
}

// atRest compares a lease with what the server has of its type.
func (l *lease) atRest(defined bool, server map[string]seen) (found []string) {
	at := l.Status()
	switch {
	case defined && (at.State != status.StateSynced || at.Reason != ""):
		return []string{fmt.Sprintf("%s is %s (%s): %v", l.view.name, at.State, at.Reason, at.Err)}
	case !defined && at.State != status.StateNotServed:
		return []string{fmt.Sprintf("%s is %s (%s), and the type does not exist", l.view.name, at.State, at.Reason)}
	}
	l.mu.Lock()
	namespaces, handlers := l.namespaces, slices.Clone(l.handlers)
	l.mu.Unlock()
	want := map[string]seen{}
	for key, s := range server {
		if (l.view.color == "" || s.color == l.view.color) && (namespaces == nil || slices.Contains(namespaces, key[:1])) {
			want[key] = s
		}
	}
	objects, err := l.Lister().List(labels.Everything())
	if err != nil && defined { // the lists of namespaces fail if there is no type
		found = append(found, fmt.Sprintf("the lister of %s: %v", l.view.name, err))
	}
	has := map[string]seen{}
	for _, obj := range objects {
		s := observe(obj, l.view.example)
		has[s.key] = s
	}
	found = append(found, differences("the cache of "+l.view.name, want, has)...)
	for _, h := range handlers {
		found = append(found, h.differences(want)...)
	}
	return found
}
