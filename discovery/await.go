package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Await waits until gvr is served, and returns the resource. While the resolver runs, the change that it
// notices ends the wait; otherwise Await asks the server every 2 s. After that, it may take some seconds until
// the server can list objects of a new type.
//
// If ctx ends first, the error has the last answer and the cause of ctx. If gvr is not the name of any
// possible resource, Await returns a [*RefError] at once.
func (r *Resolver) Await(ctx context.Context, gvr schema.GroupVersionResource) (Resource, error) {
	if err := CheckGVR(gvr); err != nil {
		return Resource{}, err
	}
	return r.await(ctx, questionOfGVR(gvr))
}

// AwaitRef is [Resolver.Await] for a reference as [Resolver.Resolve] takes it. The wait does not end while
// the resource is not served in the version that ref has. If ref is invalid or ambiguous, AwaitRef returns
// a [*RefError] or an [*AmbiguousError] at once.
func (r *Resolver) AwaitRef(ctx context.Context, ref string) (Resource, error) {
	q, err := parseQuestion(ref)
	if err != nil {
		return Resource{}, err
	}
	return r.await(ctx, q)
}

// await waits until q has an answer.
func (r *Resolver) await(ctx context.Context, q question) (Resource, error) {
	if ctx == nil {
		return Resource{}, inconclusive(q.ref, errNilContext)
	}
	defer r.expect(schema.GroupResource{Group: q.ref.Group, Resource: q.ref.Resource})()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last error // the last answer of the server without a run
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
			res, err = c.lookUp(q)
		} else {
			res, err = r.answers.counted(r.answer(ctx, q))
			timer.Reset(r.options.pace.awaited)
		}
		if err == nil || errors.Is(err, ErrAmbiguous) {
			return res, err
		}
		if c == nil {
			if last != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
				err = last // the request has ended with ctx
			}
			last = err
		}
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			if c != nil {
				err = c.refuse(q)
			}
			if cause := context.Cause(ctx); !errors.Is(err, cause) {
				err = fmt.Errorf("%w (stopped waiting: %w)", err, cause)
			}
			return Resource{}, err
		}
	}
}

// want records the callers that wait for a type.
type want struct {
	callers int
	since   time.Time
	left    time.Time // the time at which the last caller has left
}

// wantFor is how long a want without callers counts: a caller that returns after a check continues its
// wait. Later it is removed when another caller begins to wait.
const wantFor = 30 * time.Second

// expect records that a caller waits for gr, until stop is called.
func (r *Resolver) expect(gr schema.GroupResource) (stop func()) {
	now := time.Now()
	r.mu.Lock()
	if r.wanted == nil {
		r.wanted = map[schema.GroupResource]*want{}
	}
	r.forgetWantsLocked(now)
	w := r.wanted[gr]
	if w == nil {
		w = &want{since: now}
		r.wanted[gr] = w
	}
	w.callers++
	l := r.live
	r.mu.Unlock()
	if l != nil {
		l.widen()
		l.expected(gr)
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		w.callers--
		w.left = time.Now()
	})
}

// wants reports whether a caller waits for gr.
func (r *Resolver) wants(gr schema.GroupResource) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.wanted[gr]
	return w != nil && w.callers > 0
}

// forgetWantsLocked removes the wants whose last caller has left some time ago. Caller holds r.mu.
func (r *Resolver) forgetWantsLocked(now time.Time) {
	maps.DeleteFunc(r.wanted, func(_ schema.GroupResource, w *want) bool {
		return w.callers == 0 && now.Sub(w.left) > wantFor
	})
}

// awaitedSince reports whether callers wait for types, and returns the start of the latest wait.
func (r *Resolver) awaitedSince() (waits bool, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.wanted {
		if w.callers > 0 {
			waits = true
			if w.since.After(since) {
				since = w.since
			}
		}
	}
	return waits, since
}

// expected records that a caller waits for gr from now on.
func (l *live) expected(gr schema.GroupResource) {
	if l.resolver.polls(l) {
		l.ask()
	}
	l.mu.Lock()
	if state := l.knowledge.crd(gr); state != nil && state.meta != nil {
		l.knowledge.mayRead(crdPath, state.meta.Name)
	}
	l.mu.Unlock()
	signal(l.reads)
}
