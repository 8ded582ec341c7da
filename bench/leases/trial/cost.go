package trial

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// listed is what a cluster has objects of.
var listed = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// Goroutines are in how many goroutines at a time leases are acquired.
func Goroutines() []int { return []int{1, 10, 100} }

// batches is how many times a cost is measured; what counts is their median.
const batches = 5

// cost measures a lease on a type that has synced and that another lease keeps.
func (t *trial) cost(ctx context.Context) (err error) {
	factory, err := dynamicinformer.NewForConfig(t.cfg)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer func() {
		end()
		err = errors.Join(err, factory.Shutdown(ctx))
	}()
	factory.Start(life)
	keep, err := factory.Acquire(ctx, listed)
	if err != nil {
		return err
	}
	defer keep.Release()
	if err := keep.WaitForSync(ctx); err != nil {
		return err
	}
	admin := cluster.Admin{Host: t.job.Server.Host}
	if err := pause(ctx, min(calm, t.job.Size.Settle)); err != nil {
		return err
	}
	for _, goroutines := range Goroutines() {
		before, err := admin.Counts(ctx)
		if err != nil {
			return err
		}
		c := Cost{Goroutines: goroutines}
		if c.Nanos, c.Allocs, err = t.pairs(ctx, factory, goroutines); err != nil {
			return err
		}
		after, err := admin.Counts(ctx)
		if err != nil {
			return err
		}
		c.Requests = after.Since(before).Requests
		t.result.Cost = append(t.result.Cost, c)
	}
	return nil
}

// pairs returns the time and the allocations of one pair: the median batch, after one
// that does not count.
func (t *trial) pairs(ctx context.Context, factory *dynamicinformer.Factory, goroutines int) (nanos, allocs float64, err error) {
	var times, counts []float64
	for i := range batches + 1 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		done, err := batch(ctx, factory, goroutines, t.job.Size.Pairs)
		took := time.Since(begin)
		if err != nil {
			return 0, 0, err
		}
		runtime.ReadMemStats(&after)
		if i > 0 {
			times = append(times, float64(took)/float64(done))
			counts = append(counts, float64(after.Mallocs-before.Mallocs)/float64(done))
		}
	}
	slices.Sort(times)
	slices.Sort(counts)
	return times[batches/2], counts[batches/2], nil
}

// batch acquires and releases about n leases, as many in each goroutine, and returns how
// many.
func batch(ctx context.Context, factory *dynamicinformer.Factory, goroutines, n int) (int, error) {
	each := max(1, n/goroutines)
	failures := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for range each {
				lease, err := factory.Acquire(ctx, listed)
				if err != nil {
					failures[i] = err
					return
				}
				lease.Release()
			}
		})
	}
	all.Wait()
	return each * goroutines, errors.Join(failures...)
}
