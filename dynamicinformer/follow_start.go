package dynamicinformer

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typestate"
	"github.com/gvrkit/gvrkit/status"
)

// startPatience is how long a type's first list may take before others are started beside it.
const startPatience = 5 * time.Second

// queueLocked puts t in line to be started. The caller holds mu.
func (w *follow) queueLocked(ctx context.Context, t *followed) {
	if !t.queued {
		t.queued = true
		w.line = append(w.line, t)
	}
	w.dispatchLocked(ctx)
}

// dispatchLocked starts who is in line, as far as the limit allows. The caller holds mu.
func (w *follow) dispatchLocked(ctx context.Context) {
	for w.slots > 0 && len(w.line) > 0 && !w.over {
		t := w.line[0]
		w.line[0] = nil // the array stays for a while
		w.line = w.line[1:]
		t.queued = false
		switch wait := time.Until(t.due()); {
		case t.busy, t.held: // nobody waits in line any more who has come to more
		case t.want == nil:
			w.attendLocked(ctx, t)
		case wait > 0:
			w.laterLocked(t, wait)
		default:
			w.slots--
			t.begins(time.Now())
			gvr := t.res.GVR
			w.work.Go(func() { w.start(ctx, t, gvr) })
		}
	}
}

// start has a lease on t, tells of it, and does what there is to do then.
func (w *follow) start(ctx context.Context, t *followed, gvr schema.GroupVersionResource) {
	l, err := w.acquire(ctx, gvr)
	w.mu.Lock()
	if err != nil {
		t.held, t.busy = false, false
		verbosity := 0
		if t.refusal == err.Error() {
			verbosity = typestate.LogRetries
		}
		t.refusal = err.Error()
		if !w.over {
			w.laterLocked(t, lookEvery)
		}
		w.leaveLocked(ctx)
		w.mu.Unlock()
		if ctx.Err() == nil && !errors.Is(err, ErrShutDown) {
			klog.FromContext(ctx).V(verbosity).Info("Can't follow the resource now, trying again", "resource", discovery.RefOf(gvr), "err", err)
		}
		return
	}
	if w.over { // nobody has been told of it, and nobody is to be
		t.held, t.busy = false, false
		w.mu.Unlock()
		l.Release()
		return
	}
	t.lease, t.refusal = l, ""
	w.work.Go(func() { w.awaitFirstList(ctx, l) })
	w.mu.Unlock()
	if w.to.Started != nil {
		w.to.Started(l)
	}
	w.tend(ctx, t)
}

// acquire returns a lease on gvr, with an informer of its own if others have one with other
// options.
func (w *follow) acquire(ctx context.Context, gvr schema.GroupVersionResource) (*Lease, error) {
	l, err := w.factory.Acquire(ctx, gvr, w.lease...)
	if errors.Is(err, ErrConflict) {
		l, err = w.factory.Acquire(ctx, gvr, append(slices.Clip(w.lease), WithSeparateInformer())...)
	}
	return l, err
}

// awaitFirstList lets the next type be started when l's informer has listed, is not about to,
// or takes too long.
func (w *follow) awaitFirstList(ctx context.Context, l *Lease) {
	patience := time.NewTimer(startPatience)
	defer patience.Stop()
	for waiting := true; waiting; {
		changed, first := l.entry.changed.Next(), l.entry.firstList()
		if first == nil || l.entry.waits() || l.released.Load() {
			break
		}
		select {
		case <-changed:
		case <-first:
			waiting = false
		case <-patience.C:
			waiting = false
		case <-l.entry.done:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaveLocked(ctx)
}

// waits reports whether something has gone wrong after which the informer waits before it
// tries again. A watch-list that has failed is followed by a list at once, unless the server
// has asked for a pause, which the client may make by itself.
func (e *entry) waits() bool {
	now := e.state.Snapshot()
	verb, c, failing := now.Failing()
	return failing && (verb != source.VerbWatch || c.Reason == status.ReasonThrottled)
}

// leaveLocked gives the place of one who was being started to the next. The caller holds mu.
func (w *follow) leaveLocked(ctx context.Context) {
	w.slots++
	w.dispatchLocked(ctx)
}
