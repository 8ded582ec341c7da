package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
)

// step is how often it is looked whether a system has settled.
const step = 2 * time.Millisecond

// rest waits until the system has settled and asks nothing more, and returns what has
// been asked until then.
func (t *trial) rest(ctx context.Context) (cluster.Counts, error) {
	for t.mapper.Settled != nil && !t.mapper.Settled() {
		if err := wait(ctx, step); err != nil {
			return cluster.Counts{}, fmt.Errorf("it does not settle: %w", err)
		}
	}
	last, err := t.admin.Counts(ctx)
	for err == nil {
		if err = wait(ctx, t.job.Rest); err != nil {
			break
		}
		var now cluster.Counts
		if now, err = t.admin.Counts(ctx); now == last {
			break
		}
		last = now
	}
	return last, err
}

// wait waits for d.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
