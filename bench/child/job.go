package child

import (
	"context"
	"fmt"
	"time"
)

// Do has a job done by a child in a role, which ctx kills, and returns its figures.
func Do[Figures any](ctx context.Context, role string, job any) (Figures, error) {
	var figures Figures
	process, err := Start(ctx, role, nil, job)
	if err != nil {
		return figures, err
	}
	if err := process.Read(&figures); err != nil {
		return figures, err
	}
	return figures, process.Stop()
}

// Work makes this process do the job that its parent asks Do for, by way of run. It gives up
// after what patience says for that job.
func Work[Job, Figures any](ctx context.Context, patience func(Job) time.Duration, run func(context.Context, Job) (Figures, error)) error {
	var job Job
	ctx, err := Orders(ctx, &job)
	if err != nil {
		return err
	}
	limit := patience(job)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("given up after %v", limit))
	defer cancel()
	figures, err := run(ctx, job)
	if err != nil {
		return err
	}
	return Answer(figures)
}
