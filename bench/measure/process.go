package measure

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/systems"
)

// Role is the role of a process that measures one system.
const Role = "system"

// patience is how long one run may take.
const patience = 8 * time.Minute

// answer is what such a process says: first that it is ready for changes, then the
// figures.
type answer struct {
	Ready   bool     `json:"ready,omitempty"`
	Figures *Figures `json:"figures,omitempty"`
}

// RunProcess makes this process measure what its parent asks for.
func RunProcess(ctx context.Context) error {
	var job Job
	ctx, err := child.Orders(ctx, &job)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("given up after %v", patience))
	defer cancel()
	figures, err := Run(ctx, job, func() error { return child.Answer(answer{Ready: true}) })
	if err != nil {
		return err
	}
	return child.Answer(answer{Figures: &figures})
}

// InProcess does job in a process of its own. It calls change when the server is to
// make its changes, in another goroutine, which has ended when InProcess returns. Of
// several failures it returns the first.
func InProcess(ctx context.Context, job Job, change func(ctx context.Context, n int) error) (figures Figures, err error) {
	system, err := systems.Named(job.System)
	if err != nil {
		return Figures{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx) // kills the process, and ends change
	defer cancel(nil)
	process, err := child.Start(ctx, Role, system.Env, job)
	if err != nil {
		return Figures{}, err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	var ready, done answer
	if err := process.Read(&ready); err != nil {
		return Figures{}, err
	}
	var changing sync.WaitGroup
	changing.Go(func() {
		if err := change(ctx, job.Events); err != nil {
			cancel(err)
		}
	})
	if err := process.Read(&done); err != nil {
		cancel(err)
	}
	changing.Wait()
	if ctx.Err() != nil {
		return Figures{}, context.Cause(ctx)
	}
	if done.Figures == nil {
		return Figures{}, errors.New("the process gave no figures")
	}
	return *done.Figures, nil
}
