package source

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// gate holds requests back until its type is admitted; from then on it forwards
// them. A request that waits here waits as long as its context lets it: to the
// reflector it is a slow server, and no back-off of the reflector's applies.
type gate struct {
	admit   func(ctx context.Context) (cache.ListerWatcherWithContext, error)
	refused func(err error)

	mu   sync.Mutex // never held while asking
	next cache.ListerWatcherWithContext
}

func (g *gate) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	next, err := g.pass(ctx)
	if err != nil {
		return nil, err
	}
	return next.ListWithContext(ctx, opts)
}

func (g *gate) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	next, err := g.pass(ctx)
	if err != nil {
		return nil, err
	}
	return next.WatchWithContext(ctx, opts)
}

// pass returns the stage behind the gate once the gate is open. Until then it
// asks for admission, first at once and then after 1, 2, 4 … 30 s, with a tenth
// of jitter.
func (g *gate) pass(ctx context.Context) (cache.ListerWatcherWithContext, error) {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 30 * time.Second}
	for {
		if next := g.admitted(); next != nil {
			return next, nil
		}
		next, err := g.admit(ctx)
		if err == nil {
			g.open(next)
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		g.refused(err)
		timer := time.NewTimer(backoff.Step())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

func (g *gate) admitted() cache.ListerWatcherWithContext {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.next
}

// open keeps the first stage that was admitted: requests that waited at the same
// time share it.
func (g *gate) open(next cache.ListerWatcherWithContext) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == nil {
		g.next = next
	}
}
