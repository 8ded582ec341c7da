package leases

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// idleAfter is the time until goroutines besides those of informers are idle.
const idleAfter = 3 * time.Second

type measure = func(context.Context, harness.Job, cluster.Connection) (harness.Figures, error)

// cost measures a lease on a synced type that has another lease.
func (s size) cost(ctx context.Context, job harness.Job, server cluster.Connection) (figures harness.Figures, err error) {
	cfg := server.Config()
	traffic := usage.Count(cfg)
	factory, err := dynamicinformer.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		err = errors.Join(err, factory.Shutdown(ctx))
	}()
	factory.Start(running)
	held, err := factory.Acquire(ctx, cluster.CRDs)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	if err := errors.Join(held.WaitForSync(ctx), usage.Sleep(ctx, min(idleAfter, s.forRound(job.Round).settle))); err != nil {
		return nil, err
	}
	figures = harness.Figures{}
	for _, goroutines := range concurrency {
		err = errors.Join(err, figures.Benchmark(costName(goroutines), traffic.Requests, func(n int) error {
			return acquire(ctx, factory, goroutines, n)
		}))
	}
	return figures, err
}

// acquire acquires and releases n leases in several goroutines.
func acquire(ctx context.Context, factory *dynamicinformer.Factory, goroutines, n int) error {
	pairs, ctx := errgroup.WithContext(ctx)
	for k := range goroutines {
		pairs.Go(func() error {
			for i := k; i < n; i += goroutines {
				lease, err := factory.Acquire(ctx, cluster.CRDs)
				if err != nil {
					return err
				}
				lease.Release()
			}
			return nil
		})
	}
	return pairs.Wait()
}

// measureAbsent returns a function that measures informers on types that are not served.
func (s size) measureAbsent(open informers.Open) measure {
	return func(ctx context.Context, job harness.Job, server cluster.Connection) (figures harness.Figures, err error) {
		cfg := server.Config()
		traffic := usage.Count(cfg)
		err = open.Use(ctx, cfg, func(ctx context.Context, set *informers.Set) (err error) {
			figures, err = s.forRound(job.Round).onAbsent(ctx, set, traffic)
			return err
		})
		return figures, err
	}
}

// onAbsent measures the informers of a set. It makes one informer before, for the memory that
// informers share.
func (s size) onAbsent(ctx context.Context, set *informers.Set, traffic *usage.Traffic) (harness.Figures, error) {
	first, err := addAbsent(ctx, set, 0, 1)
	if err := errors.Join(err, handle(first), usage.Sleep(ctx, min(idleAfter, s.settle))); err != nil {
		return nil, err
	}
	begun, empty, idle := traffic.Requests(), memory(), runtime.NumGoroutine()
	all, err := addAbsent(ctx, set, 1, s.absent)
	if err := errors.Join(err, usage.Sleep(ctx, s.settle)); err != nil {
		return nil, err
	}
	settled, begin := traffic.Requests(), time.Now()
	if err := usage.Sleep(ctx, s.count); err != nil {
		return nil, err
	}
	rate := (traffic.Requests() - settled) / time.Since(begin).Seconds()
	bare, n := memory(), float64(s.absent)
	if err := errors.Join(handle(all), usage.Sleep(ctx, min(idleAfter, s.settle))); err != nil {
		return nil, err
	}
	figures := harness.Figures{
		startRequests: settled - begun, requestRate: rate, absentMemory: (bare - empty) / n,
		handlerMemory: (memory() - bare) / n, absentGoroutines: float64(runtime.NumGoroutine()-idle) / n,
	}
	for i, informer := range all { // the informers are reachable until here
		if informer.HasSynced() {
			return nil, fmt.Errorf("informer %d has synced on a type that is not served", i)
		}
	}
	return figures, nil
}

// memory returns the size of reachable memory and of stacks, in KB.
func memory() float64 {
	heap, stacks := usage.LiveMemory()
	return float64(heap+stacks) / 1e3
}

// addAbsent makes and starts n informers on types that are not served, beginning with type i.
func addAbsent(ctx context.Context, set *informers.Set, i, n int) ([]cache.SharedIndexInformer, error) {
	all := make([]cache.SharedIndexInformer, n)
	for k := range all {
		var err error
		if all[k], err = set.Add(ctx, cluster.Additional(i + k).Types[0].GVR); err != nil {
			return nil, err
		}
		set.Start()
	}
	return all, nil
}

// handle adds a handler to each informer.
func handle(all []cache.SharedIndexInformer) error {
	for _, informer := range all {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
			return err
		}
	}
	return nil
}
