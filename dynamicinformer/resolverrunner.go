package dynamicinformer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// resolverRunner runs a factory's resolver, and passes its events on. The factory's mu guards it.
type resolverRunner struct {
	resolver *discovery.Resolver // nil: there is no discovery
	handle   func(discovery.Event)

	cancel context.CancelFunc // nil: it does not run
	done   chan struct{}      // closes when the last run has ended, and so have those before; nil: there was none
}

// start makes it run, if it does not. Values of ctx are used, and not its end: it runs until stop.
func (r *resolverRunner) start(ctx context.Context) {
	if r.resolver == nil || r.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	before, done := r.done, make(chan struct{})
	r.cancel, r.done = cancel, done
	go func() {
		defer close(done)
		if before != nil { // it may run the resolver still, but not for long
			<-before
		}
		r.run(ctx)
	}()
}

// stop ends the run without waiting for it.
func (r *resolverRunner) stop() {
	if r.cancel != nil {
		r.cancel()
		r.cancel = nil
	}
}

// begun returns a channel that closes when the resolver runs, if it is about to; nil: it is not.
func (r *resolverRunner) begun() <-chan struct{} {
	if r.cancel == nil {
		return nil
	}
	return r.resolver.Running()
}

// runAgain is how long to wait while another caller runs the resolver.
const runAgain = 5 * time.Second

func (r *resolverRunner) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() {
		for errors.Is(r.resolver.Run(ctx), discovery.ErrRunning) && pause(ctx, runAgain) {
		}
	})
	for event := range r.resolver.Subscribe(ctx) {
		r.handle(event)
	}
	running.Wait()
}

// pause waits for d, and reports whether ctx lasted for so long.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
