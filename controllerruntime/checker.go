package controllerruntime

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
)

// checker is a toolscache.DoneChecker of a cache. A goroutine of the cache, which begins with the first call of Done, waits.
type checker struct {
	cache *Cache
	name  string
	// await returns true when it is done, or false when ctx ends.
	await func(ctx context.Context) bool

	once sync.Once
	done chan struct{}
}

func (c *Cache) newChecker(name string, await func(ctx context.Context) bool) *checker {
	return &checker{cache: c, name: name, await: await, done: make(chan struct{})}
}

// Name implements toolscache.DoneChecker.
func (c *checker) Name() string { return c.name }

// Done implements toolscache.DoneChecker.
func (c *checker) Done() <-chan struct{} {
	c.once.Do(func() {
		if !c.cache.waiting.Begin() {
			return // the cache has ended
		}
		go func() {
			defer c.cache.waiting.End()
			if c.await(wait.ContextForChannel(c.cache.ended)) {
				close(c.done)
			}
		}()
	})
	return c.done
}

var _ toolscache.DoneChecker = (*checker)(nil)

// awaitDone waits until of is done. It returns false if ctx ends or the informer is removed before.
func (i *informer) awaitDone(ctx context.Context, of toolscache.DoneChecker) bool {
	select {
	case <-of.Done():
	case <-ctx.Done():
	case <-i.lease.Done():
	}
	return toolscache.IsDone(of) // also if ctx has ended or the informer was removed since
}
