package dynamicinformer

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// resolverRunner runs a factory's resolver, and passes its events on. The factory's mu guards it.
type resolverRunner struct {
	resolver *discovery.Resolver // nil: the factory has no discovery
	handle   func(discovery.Event)

	cancel context.CancelFunc // nil: the runner is stopped
	done   chan struct{}      // closes when all runs so far have ended; nil: there was no run
}

// start begins a run, unless there is one. It uses the values of ctx, but not its end: the run lasts
// until stop. If there are few types, the run begins narrow.
func (r *resolverRunner) start(ctx context.Context, types int) {
	if r.resolver == nil || r.cancel != nil {
		return
	}
	if ctx = context.WithoutCancel(ctx); types <= typefacts.Few {
		ctx = typefacts.WithInformers(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	before, done := r.done, make(chan struct{})
	r.cancel, r.done = cancel, done
	go func() {
		defer close(done)
		if before != nil { // the previous run is stopped, but may not have ended
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

// begun returns a channel that closes when the resolver runs. It is nil if the runner is stopped.
func (r *resolverRunner) begun() <-chan struct{} {
	if r.cancel == nil {
		return nil
	}
	return r.resolver.Running()
}

// runAgain is the pause between attempts to run the resolver while another caller runs it.
const runAgain = 5 * time.Second

func (r *resolverRunner) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() {
		_ = wait.PollUntilContextCancel(ctx, runAgain, true, func(ctx context.Context) (ended bool, _ error) {
			return !errors.Is(r.resolver.Run(ctx), discovery.ErrRunning), nil
		})
	})
	for event := range r.resolver.Subscribe(typefacts.WithInformers(ctx)) { // also if the run does not begin narrow
		r.handle(event)
	}
	running.Wait()
}
