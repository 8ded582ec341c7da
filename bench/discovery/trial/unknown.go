package trial

import (
	"context"
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
)

// forgetful is how many times fewer asks are made of who must forget everything before
// each: these take long, and each takes the same.
const forgetful = 20

// allUnknown measures asking for what is not there.
func (t *trial) allUnknown(ctx context.Context) error {
	unknown, err := t.unknown(ctx, 7, t.job.Asks, nil)
	if err != nil {
		return err
	}
	t.figures.Unknown = &unknown
	if t.mapper.Forget == nil {
		return nil
	}
	noticed, err := t.unknown(ctx, 8, max(1, t.job.Asks/forgetful), t.mapper.Forget)
	if err != nil {
		return err
	}
	t.figures.Noticed = &noticed
	return nil
}

// unknown asks n times for the i-th newcomer, which is not there, and calls forget before
// each.
func (t *trial) unknown(ctx context.Context, i, n int, forget func()) (Unknown, error) {
	of := newServed(cluster.Newcomer(i).Types[0])
	before, err := t.admin.Counts(ctx)
	if err != nil {
		return Unknown{}, err
	}
	begin := time.Now()
	for range n {
		if forget != nil {
			forget()
		}
		if err := t.askNothing(&of); err != nil {
			return Unknown{}, err
		}
	}
	took := time.Since(begin)
	after, err := t.admin.Counts(ctx)
	return Unknown{Asks: n, Requests: after.Since(before).Requests, Nanos: float64(took) / float64(n)}, err
}
