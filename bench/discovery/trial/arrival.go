package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
)

// lead is for how long a type is asked for before it comes. A part of the interval of
// polls is added.
const lead = 500 * time.Millisecond

// arrivals measures types that come.
func (t *trial) arrivals(ctx context.Context) error {
	polled, err := t.arrival(ctx, 0, t.poll)
	if err != nil {
		return fmt.Errorf("polled: %w", err)
	}
	t.figures.Polled = &polled
	if t.mapper.Await == nil {
		return nil
	}
	awaited, err := t.arrival(ctx, 1, t.await)
	if err != nil {
		return fmt.Errorf("awaited: %w", err)
	}
	t.figures.Awaited = &awaited
	return nil
}

// arrival lets the i-th newcomer come, and go again, and measures until is waited for
// it.
func (t *trial) arrival(ctx context.Context, i int, until func(context.Context, *served) error) (Arrival, error) {
	before, err := t.admin.Counts(ctx)
	if err != nil {
		return Arrival{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	came := make(chan time.Time, 1)
	go func() {
		err := wait(ctx, lead+time.Duration(t.job.Phase*float64(t.job.Poll)))
		var at time.Time
		if err == nil {
			at, err = t.admin.Create(ctx, i)
		}
		if err != nil {
			cancel(err)
		}
		came <- at
	}()
	of := newServed(cluster.Newcomer(i).Types[0])
	err = until(ctx, &of)
	now := time.Now()
	if err != nil {
		cancel(err)
	}
	at := <-came
	switch {
	case err != nil:
		return Arrival{}, err
	case ctx.Err() != nil:
		return Arrival{}, context.Cause(ctx)
	case at.IsZero() || now.Before(at):
		return Arrival{}, errors.New("it was there before it came")
	}
	after, err := t.rest(ctx)
	if err != nil {
		return Arrival{}, err
	}
	if err := t.admin.Delete(ctx, i); err != nil {
		return Arrival{}, err
	}
	_, err = t.rest(ctx)
	return Arrival{Latency: now.Sub(at), Requests: after.Since(before).Requests}, err
}

// poll asks for a type again and again, as who is not told must.
func (t *trial) poll(ctx context.Context, of *served) error {
	ticker := time.NewTicker(t.job.Poll)
	defer ticker.Stop()
	for {
		last := t.ask(of)
		if last == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), last)
		}
		if t.mapper.Forget != nil {
			t.mapper.Forget()
		}
	}
}

// await waits for a type as who is told does.
func (t *trial) await(ctx context.Context, of *served) error {
	if err := t.mapper.Await(ctx, of.GVR); err != nil {
		return err
	}
	return t.ask(of)
}
