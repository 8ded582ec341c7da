package trial

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// ledger is a handler that knows which objects there are as far as it has been told, and
// since when there are as many.
type ledger struct {
	mu      sync.Mutex
	names   map[cache.ObjectName]struct{}
	at      time.Time
	changed chan struct{} // closed and replaced when their number changes
}

// newLedger returns one with room for n objects.
func newLedger(n int) *ledger {
	return &ledger{names: make(map[cache.ObjectName]struct{}, n), changed: make(chan struct{})}
}

// OnAdd implements cache.ResourceEventHandler.
func (l *ledger) OnAdd(obj any, _ bool) {
	l.change(obj, func(name cache.ObjectName) { l.names[name] = struct{}{} })
}

// OnUpdate implements cache.ResourceEventHandler.
func (l *ledger) OnUpdate(any, any) {}

// OnDelete implements cache.ResourceEventHandler.
func (l *ledger) OnDelete(obj any) {
	l.change(obj, func(name cache.ObjectName) { delete(l.names, name) })
}

func (l *ledger) change(obj any, change func(cache.ObjectName)) {
	now := time.Now()
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return // it is missed, then
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.names)
	if change(name); len(l.names) == before {
		return
	}
	l.at = now
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until there are n objects, and returns since when.
func (l *ledger) await(ctx context.Context, n int) (time.Time, error) {
	for {
		l.mu.Lock()
		have, at, changed := len(l.names), l.at, l.changed
		l.mu.Unlock()
		if have == n {
			return at, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return at, fmt.Errorf("the handler knows of %d objects in place of %d: %w", have, n, context.Cause(ctx))
		}
	}
}
