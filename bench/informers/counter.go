package informers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Counter is a handler that counts its events. [NewCounter] makes one.
type Counter struct {
	count, goal atomic.Int64
	reached     chan time.Time // gets the time when count is goal
}

// NewCounter returns a counter without a goal.
func NewCounter() *Counter { return &Counter{reached: make(chan time.Time, 1)} }

// Expect sets the goal to n more events, at least one. It is called before the first of them.
func (c *Counter) Expect(n int) { c.goal.Store(c.count.Load() + int64(n)) }

// Wait waits until the goal is reached, and returns the time of that.
func (c *Counter) Wait(ctx context.Context) (time.Time, error) {
	select {
	case at := <-c.reached:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("%d events are missing: %w", c.goal.Load()-c.count.Load(), context.Cause(ctx))
	}
}

func (c *Counter) add() {
	if c.count.Add(1) == c.goal.Load() {
		c.reached <- time.Now()
	}
}

// OnAdd counts an event, as the other methods do.
func (c *Counter) OnAdd(any, bool) { c.add() }

// OnUpdate counts an event.
func (c *Counter) OnUpdate(_, _ any) { c.add() }

// OnDelete counts an event.
func (c *Counter) OnDelete(any) { c.add() }

// OnMoved counts an event.
func (c *Counter) OnMoved(any) { c.add() }
