package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/child"
)

// Role is the role of a process that measures one part of one system.
const Role = "trial"

// patience is how long one trial may take beside what its size says.
const patience = 3 * time.Minute

// RunProcess makes this process measure what its parent asks for.
func RunProcess(ctx context.Context) error {
	var job Job
	ctx, err := child.Orders(ctx, &job)
	if err != nil {
		return err
	}
	limit := patience + job.Size.Settle + job.Size.Count + time.Duration(job.Size.Cycles)*perCycle
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("given up after %v", limit))
	defer cancel()
	figures, err := Run(ctx, job)
	if err != nil {
		return err
	}
	return child.Answer(figures)
}

// InProcess does job in a process of its own, which ctx kills.
func InProcess(ctx context.Context, job Job) (Figures, error) {
	process, err := child.Start(ctx, Role, nil, job)
	if err != nil {
		return Figures{}, err
	}
	var figures Figures
	if err := process.Read(&figures); err != nil {
		return Figures{}, fmt.Errorf("%s, %s: %w", job.Part, job.System, err)
	}
	return figures, process.Stop()
}
