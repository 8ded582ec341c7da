package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/child"
)

// Role is the role of a process that measures one part of one system.
const Role = "trial"

// patience is how long one trial may take.
func patience(job Job) time.Duration {
	return 3*time.Minute + job.Size.Settle + job.Size.Count + time.Duration(job.Size.Cycles)*perCycle
}

// RunProcess makes this process measure what its parent asks for.
func RunProcess(ctx context.Context) error { return child.Work(ctx, patience, Run) }

// InProcess does job in a process of its own, which ctx kills.
func InProcess(ctx context.Context, job Job) (Figures, error) {
	figures, err := child.Do[Figures](ctx, Role, job)
	if err != nil {
		return figures, fmt.Errorf("%s, %s: %w", job.Part, job.System, err)
	}
	return figures, nil
}
