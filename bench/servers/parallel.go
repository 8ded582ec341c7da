package servers

import (
	"context"
	"sync"
	"sync/atomic"
)

// InParallel calls do with each number below n, in some goroutines at a time, and
// waits for them. It returns the first error, after which no call is begun.
func InParallel(ctx context.Context, goroutines, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
