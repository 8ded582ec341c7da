package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Await waits until gvr is served, and returns it then; at once, if it is. While the
// resolver runs, its events end the wait; otherwise Await asks every 2 s. A type that is
// served may not be listable yet: the server may take some seconds more.
//
// If ctx ends first, the error has the last answer, and ctx's cause. A GVR that can't
// be is a [*RefError] at once.
func (r *Resolver) Await(ctx context.Context, gvr schema.GroupVersionResource) (Resource, error) {
	if err := CheckGVR(gvr); err != nil {
		return Resource{}, err
	}
	defer r.expect(gvr.GroupResource())()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		c := r.current.Load()
		var (
			res Resource
			err error
		)
		if c != nil {
			if res := c.served(gvr); res != nil {
				return *res, nil
			}
			err = errAwaited // and worked out at the end
		} else {
			res, err = r.ResolveGVR(ctx, gvr)
			timer.Reset(r.options.pace.awaited)
		}
		if err == nil {
			return res, nil
		}
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			if c != nil {
				err = c.refuse(questionOfGVR(gvr))
			}
			if cause := context.Cause(ctx); !errors.Is(err, cause) {
				err = fmt.Errorf("%w (stopped waiting: %w)", err, cause)
			}
			return Resource{}, err
		}
	}
}

var errAwaited = errors.New("not served yet")

// want is that callers wait for a type.
type want struct {
	callers int
	since   time.Time
	left    time.Time // when one has left
}

// wantFor is how long a want is remembered without a caller: one that comes back, having
// looked, goes on waiting.
const wantFor = 30 * time.Second

// wants reports whether a caller waits for gr.
func (r *Resolver) wants(gr schema.GroupResource) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.wanted[gr]
	return w != nil && w.callers > 0
}

// awaitedSince reports whether callers wait for types, and since when the last of them does.
func (r *Resolver) awaitedSince(now time.Time) (waits bool, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for gr, w := range r.wanted {
		switch {
		case w.callers > 0:
			waits = true
			if w.since.After(since) {
				since = w.since
			}
		case now.Sub(w.left) > wantFor:
			delete(r.wanted, gr)
		}
	}
	return waits, since
}

// expected takes it that a caller waits for gr from now on.
func (l *live) expected(gr schema.GroupResource) {
	if l.resolver.polls(l) {
		l.ask()
	}
	l.mu.Lock()
	if state := l.known.crd(gr); state != nil && state.meta != nil {
		l.known.mayRead(crdPath, state.meta.Name)
	}
	l.mu.Unlock()
	signal(l.reads)
}
