package dynamicinformer

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// lookEvery is how often a type is looked at again of which no event comes.
const lookEvery = 2 * time.Second

// follow is one call of Follow. A type has a goroutine while there is something to do for
// it, and none while it is well, or waits in line to be started.
type follow struct {
	factory  *Factory
	resolver *discovery.Resolver
	selector discovery.Selector
	to       FollowFuncs
	lease    []ResourceOption

	work sync.WaitGroup
	wake chan struct{} // has one if the clock is to look at what is due

	// mu guards the fields below, and the types. It is never held across I/O, a channel
	// operation that may block, or a callback.
	mu    sync.Mutex
	types map[schema.GroupResource]*followed
	line  []*followed // who waits to be started
	slots int         // how many may be started now
	later map[*followed]time.Time
	over  bool
}

func newFollow(f *Factory, s discovery.Selector, to FollowFuncs, o followOptions) *follow {
	return &follow{
		factory: f, resolver: f.options.resolver, selector: s, to: to, lease: o.lease,
		wake:  make(chan struct{}, 1),
		types: map[schema.GroupResource]*followed{},
		slots: o.starts,
		later: map[*followed]time.Time{},
	}
}

// run follows until ctx ends, or the factory is shut down, and leaves nothing behind.
func (w *follow) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.work.Go(func() {
		defer cancel()
		w.keepTime(ctx)
	})
	for event := range w.resolver.Subscribe(ctx, discovery.WithLabelChanges()) {
		w.hear(ctx, event)
	}
	w.finish(ctx)
	w.work.Wait()
}

// hear takes what has happened to a type.
func (w *follow) hear(ctx context.Context, event discovery.Event) {
	if event.Type == discovery.Removed {
		w.mu.Lock()
		defer w.mu.Unlock()
		if t := w.types[event.Resource.GVR.GroupResource()]; t != nil {
			t.gone(event.Evidence)
			w.attendLocked(ctx, t)
		}
		return
	}
	selects, err := w.selects(event.Resource)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settleLocked(ctx, event.Resource, selects, err)
}

// selects reports whether res is to be followed.
func (w *follow) selects(res discovery.Resource) (bool, error) {
	if !res.Supports("list") || !res.Supports("watch") {
		return false, nil
	}
	return w.resolver.Selects(w.selector, res)
}

// settleLocked makes of that what is to be. The caller holds mu.
func (w *follow) settleLocked(ctx context.Context, res discovery.Resource, selects bool, err error) {
	gr := res.GVR.GroupResource()
	t := w.types[gr]
	if t == nil {
		if !selects && err == nil {
			return
		}
		t = &followed{gr: gr}
		w.types[gr] = t
	}
	switch {
	case err != nil:
		t.undecided(res)
		w.laterLocked(t, lookEvery)
	case selects:
		t.selected(res)
	default:
		t.deselected(res)
	}
	w.attendLocked(ctx, t)
}

// attendLocked sees to it that what is to be done for t is done. The caller holds mu.
func (w *follow) attendLocked(ctx context.Context, t *followed) {
	switch {
	case t.busy:
		t.changed.Ring()
	case t.held && (t.end != nil || w.over):
		t.busy = true
		w.work.Go(func() { w.tend(ctx, t) })
	case t.held, w.over:
	case t.want != nil:
		w.queueLocked(ctx, t)
	case t.unsure != nil, t.queued:
	case time.Since(t.began) < calm: // if it comes back, it is known how often it has
		w.laterLocked(t, calm-time.Since(t.began))
	default:
		delete(w.types, t.gr)
		delete(w.later, t)
	}
}

// tend gives back the lease of t if there is a reason, and so on until nothing is left to do.
func (w *follow) tend(ctx context.Context, t *followed) {
	for w.tendOnce(ctx, t) {
	}
}

func (w *follow) tendOnce(ctx context.Context, t *followed) bool {
	w.mu.Lock()
	l := t.lease
	if !t.held || t.end == nil && !w.over {
		t.busy = false
		w.attendLocked(ctx, t)
		w.mu.Unlock()
		return false
	}
	w.mu.Unlock()
	if !w.awaitEnd(ctx, t, l) {
		return true // it goes on after all
	}
	w.mu.Lock()
	if t.end == nil && !w.over {
		w.mu.Unlock()
		return true
	}
	var evidence discovery.Evidence
	if t.end != nil && (t.end.Kind != discovery.NotListed || !w.over) {
		evidence = *t.end
	}
	res := t.res
	t.held, t.lease, t.end = false, nil, nil
	w.mu.Unlock()
	l.Release()
	if w.to.Stopped != nil {
		w.to.Stopped(res, evidence)
	}
	return true
}

// finish gives back all leases at once, and has all who have been told of a start told of the
// end.
func (w *follow) finish(ctx context.Context) {
	w.mu.Lock()
	w.over, w.line = true, nil
	var leases []*Lease
	for _, t := range w.types {
		if t.lease != nil {
			leases = append(leases, t.lease)
		}
		w.attendLocked(ctx, t)
	}
	w.mu.Unlock()
	for _, l := range leases {
		l.Release()
	}
}
