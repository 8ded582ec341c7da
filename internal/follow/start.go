package follow

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
)

// startTimeout is how long a type's first list may take before its slot is freed.
const startTimeout = 5 * time.Second

// logRetries is the verbosity of log lines about repeated failures.
const logRetries = 4

// enqueueLocked puts t, which is neither held nor busy, in the queue of types to start. Only startQueuedLocked changes that.
// The caller holds mu.
func (f *Follower) enqueueLocked(ctx context.Context, t *followed) {
	if !t.queued {
		t.queued = true
		f.queue = append(f.queue, t)
	}
	f.startQueuedLocked(ctx)
}

// startQueuedLocked starts types of the queue while there are slots. The caller holds mu.
func (f *Follower) startQueuedLocked(ctx context.Context) {
	for f.slots > 0 && len(f.queue) > 0 && !f.ending {
		if f.Most > 0 && f.active >= f.Most {
			f.waitLocked(ctx)
			return
		}
		t := f.queue[0]
		f.queue[0] = nil // the array is kept
		f.queue = f.queue[1:]
		t.queued = false
		if wait := time.Until(t.due()); wait > 0 {
			f.recheckLocked(t, wait)
			continue
		}
		f.slots--
		f.active++
		t.begins(time.Now())
		gvr := t.res.GVR
		f.goroutines.Go(func() { f.start(ctx, t, gvr) })
	}
}

// waitLocked logs that types wait for the end of others, in another goroutine. The caller holds mu.
func (f *Follower) waitLocked(ctx context.Context) {
	if !f.full {
		f.full = true
		f.goroutines.Go(func() {
			klog.FromContext(ctx).Info("Follow has reached its limit of types; further types wait", "limit", f.Most)
		})
	}
}

// leaveLocked records that a type no longer counts for Most. The caller holds mu.
func (f *Follower) leaveLocked(ctx context.Context) {
	f.active--
	f.startQueuedLocked(ctx)
	if len(f.queue) == 0 {
		f.full = false
	}
}

// start acquires a lease on t, calls Started, and does further work for t.
func (f *Follower) start(ctx context.Context, t *followed, gvr schema.GroupVersionResource) {
	l, err := f.Acquire(ctx, gvr)
	f.mu.Lock()
	if err != nil {
		t.held, t.busy = false, false
		verbosity := 0
		if t.failure == err.Error() {
			verbosity = logRetries
		}
		t.failure = err.Error()
		if !f.ending {
			f.recheckLocked(t, recheckEvery)
		}
		f.leaveLocked(ctx)
		f.freeSlotLocked(ctx)
		f.mu.Unlock()
		if ctx.Err() == nil && !f.closed() {
			klog.FromContext(ctx).V(verbosity).Info("Can't follow the resource now, trying again", "resource", discovery.RefOf(gvr), "err", err)
		}
		return
	}
	if f.ending { // Started is not called any more
		t.held, t.busy = false, false
		f.mu.Unlock()
		l.Release()
		return
	}
	t.lease, t.failure = l, ""
	f.goroutines.Go(func() { f.awaitFirstList(ctx, l) })
	f.mu.Unlock()
	if f.Started != nil {
		f.Started(l)
	}
	f.work(ctx, t)
}

func (f *Follower) closed() bool {
	select {
	case <-f.Closed:
		return true
	default:
		return false
	}
}

// awaitFirstList frees the slot when l has its first list, when the list is delayed, or when it
// takes too long.
func (f *Follower) awaitFirstList(ctx context.Context, l Lease) {
	bounded, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for bounded.Err() == nil {
		changed, listed := l.Changed(), l.Listed()
		if listed == nil || l.Waits() {
			break
		}
		select {
		case <-changed:
		case <-listed:
		case <-bounded.Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.freeSlotLocked(ctx)
}

// freeSlotLocked frees the slot of a started type for the next type. The caller holds mu.
func (f *Follower) freeSlotLocked(ctx context.Context) {
	f.slots++
	f.startQueuedLocked(ctx)
}
