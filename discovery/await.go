package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Await waits until gvr is served, and returns it then; at once, if it is. While the
// resolver runs it is told, and otherwise it asks every 2 s. That a type is served does
// not say that its objects can be listed yet: the server may take some seconds more.
//
// If ctx ends first, the error has the last answer, and ctx's cause. A GVR that can't
// be is a [*RefError] at once.
func (r *Resolver) Await(ctx context.Context, gvr schema.GroupVersionResource) (Resource, error) {
	if err := CheckGVR(gvr); err != nil {
		return Resource{}, err
	}
	r.awaiting(1)
	defer r.awaiting(-1)
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

// Pending returns why the CustomResourceDefinition of gr is not served, which is there: a
// [*NotEstablishedError]. It returns nil if there is none, if it is served, or if the
// resolver does not know. It asks nobody.
func (r *Resolver) Pending(gr schema.GroupResource) error {
	c := r.current.Load()
	if c == nil {
		return nil
	}
	q := questionOfGVR(gr.WithVersion(""))
	for _, reading := range q.readings() {
		if definition := c.waitingFor(reading); definition != nil {
			return newNotEstablishedError(q, definition)
		}
	}
	return nil
}

// Expect lets the resolver know that somebody waits for a type that is not served, until
// stop is called. While it runs and may not watch, it then asks every 2 s, as for Await;
// otherwise that makes no difference. Neither blocks.
func (r *Resolver) Expect() (stop func()) {
	r.awaiting(1)
	return sync.OnceFunc(func() { r.awaiting(-1) })
}

// awaiting lets a run know that n more callers await something.
func (r *Resolver) awaiting(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.awaited += n
	if n > 0 && r.live != nil && r.live.polls() {
		r.live.ask()
	}
}
