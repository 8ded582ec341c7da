package discovery

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// feedPace is how long a feed waits for what. Waits are spread, so that the feeds of many
// processes do not ask at the same time.
type feedPace struct {
	first, last time.Duration // the back-off doubles from first to last
	absent      time.Duration // before a collection that there is none of is asked for again
	forbidden   time.Duration // before what is forbidden is asked for again
	steady      time.Duration // a watch that lives so long is a good one, even without an event
	lifetime    time.Duration // asked for a watch, a third more or less
	grace       time.Duration // before a watch is given up that outlives its lifetime
	page        time.Duration // before a page of a list is given up
}

var usualFeedPace = feedPace{
	first: 200 * time.Millisecond, last: 30 * time.Second,
	absent: time.Minute, forbidden: 30 * time.Second,
	steady: 5 * time.Second, lifetime: 450 * time.Second, grace: 30 * time.Second,
	page: 90 * time.Second,
}

// delay returns how long to wait after a failure.
func (f *feed[T]) delay(failed feedState) time.Duration {
	var d time.Duration
	switch failed.phase {
	case feedAbsent:
		d = spread(f.pace.absent, 0.1)
	case feedForbidden:
		d = spread(f.pace.forbidden, 0.1)
	default:
		f.backoff = min(max(2*f.backoff, f.pace.first), f.pace.last)
		d = spread(f.backoff, 0.5)
	}
	// The endpoint is asked too: the answer that begins a pause is not yet its error.
	var paused *pauseError
	if errors.As(failed.err, &paused) || errors.As(f.endpoint.pauses.of(f.path), &paused) {
		d = max(time.Until(paused.until), 0)
		d += time.Duration(rand.Float64() * float64(d) / 10)
	}
	return d
}

// spread returns d, more or less by up to that part of it.
func spread(d time.Duration, part float64) time.Duration {
	return time.Duration(float64(d) * (1 - part + 2*part*rand.Float64()))
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
