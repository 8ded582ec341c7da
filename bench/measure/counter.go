package measure

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// counter is the event handler of all systems: it counts events and remembers the
// last version, and nothing else.
type counter struct {
	count   atomic.Int64
	version atomic.Uint64
	goal    atomic.Pointer[goal]
}

var _ cache.ResourceEventHandler = (*counter)(nil)

// goal is a number of events to wait for.
type goal struct {
	count   int64
	reached chan struct{}
	at      time.Time // when; read after reached is closed
}

// expect returns a goal of n events more. It is called before the first of them.
func (c *counter) expect(n int) *goal {
	g := &goal{count: c.count.Load() + int64(n), reached: make(chan struct{})}
	if n == 0 {
		g.at = time.Now()
		close(g.reached)
	}
	c.goal.Store(g)
	return g
}

// wait waits until the goal is reached, and returns when it was.
func (c *counter) wait(ctx context.Context, g *goal) (time.Time, error) {
	select {
	case <-g.reached:
		return g.at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("%d events are missing; the last version is %d: %w", g.count-c.count.Load(), c.version.Load(), context.Cause(ctx))
	}
}

func (c *counter) saw(obj any) {
	if m, ok := obj.(metav1.Object); ok {
		if version, err := strconv.ParseUint(m.GetResourceVersion(), 10, 64); err == nil {
			c.version.Store(version)
		}
	}
	n := c.count.Add(1)
	if g := c.goal.Load(); n == g.count {
		g.at = time.Now()
		close(g.reached)
	}
}

func (c *counter) OnAdd(obj any, _ bool) { c.saw(obj) }

func (c *counter) OnUpdate(_, obj any) { c.saw(obj) }

func (c *counter) OnDelete(obj any) { c.saw(obj) }
