package trial

import (
	"context"
	"time"

	"github.com/gvrkit/gvrkit/bench/child"
)

// Role is the role of a process that measures one system.
const Role = "trial"

// patience is how long one trial may take.
func patience(Job) time.Duration { return 3 * time.Minute }

// RunProcess makes this process measure what its parent asks for.
func RunProcess(ctx context.Context) error { return child.Work(ctx, patience, Run) }

// InProcess does job in a process of its own, which ctx kills.
func InProcess(ctx context.Context, job Job) (Figures, error) {
	return child.Do[Figures](ctx, Role, job)
}
