package dynamicinformer

import (
	"context"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// laterLocked has t looked at after d, or before if it is to be already. The caller holds mu.
func (w *follow) laterLocked(t *followed, d time.Duration) {
	at := time.Now().Add(d)
	if due, there := w.later[t]; there && due.Before(at) {
		return
	}
	w.later[t] = at
	select {
	case w.wake <- struct{}{}:
	default: // it is about to look
	}
}

// keepTime looks at types when they are due, until ctx ends or the factory is shut down.
func (w *follow) keepTime(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.wake:
		case <-timer.C:
		case <-w.factory.closing:
			return
		case <-ctx.Done():
			return
		}
		if next := w.lookAtDue(ctx); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// lookAtDue looks at those that are due, and returns when the next one is.
func (w *follow) lookAtDue(ctx context.Context) (next time.Time) {
	now := time.Now()
	var unsure []*discovery.Resource
	w.mu.Lock()
	for t, at := range w.later {
		if at.After(now) {
			continue
		}
		delete(w.later, t)
		if t.unsure != nil {
			unsure = append(unsure, t.unsure)
		}
		w.attendLocked(ctx, t)
	}
	w.mu.Unlock()
	for _, res := range unsure {
		w.reconsider(ctx, res)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.later {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// reconsider tries to tell whether res is selected, unless there is news of it.
func (w *follow) reconsider(ctx context.Context, res *discovery.Resource) {
	selects, err := w.selects(*res)
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.types[res.GVR.GroupResource()]; t != nil && t.unsure == res {
		w.settleLocked(ctx, *res, selects, err)
	}
}
