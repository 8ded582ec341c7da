// Package leases compares informers on types that are not served, or that are deleted and created
// again, and measures the cost of a lease.
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

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{Name: "leases", About: "leases, and informers on types that are not served, or are deleted and created again", Cases: cases}
}

// size is the amount of work of a run.
type size struct {
	// absent is the number of informers on types that are not served. Their requests are counted
	// for the time count, after the time settle: client-go's back-off grows for a minute.
	absent        int
	settle, count time.Duration
	// cycles is the number of times that a type is created again.
	cycles int
}

// forRound returns the size of a round. The warm-up is short.
func (s size) forRound(round int) size {
	if round == 0 {
		s.settle, s.count, s.cycles = min(s.settle, 5*time.Second), min(s.count, time.Second), 1
	}
	return s
}

// The names of metrics, and suffixes of names.
const (
	startRequests    = "requests at the start"
	requestRate      = "requests then"
	absentMemory     = "memory per informer"
	handlerMemory    = "memory per handler"
	absentGoroutines = "goroutines per informer with a handler"

	readyToSynced = "established until synced"
	worst         = ", worst of a run"
)

// concurrency has the numbers of goroutines that acquire leases.
var concurrency = []int{1, 10, 100}

func costName(goroutines int) string { return fmt.Sprintf("%d at a time", goroutines) }

func cases(quick bool) []harness.Case {
	if quick {
		return casesOf(size{absent: 200, settle: 10 * time.Second, count: 5 * time.Second, cycles: 3}, 1)
	}
	return casesOf(size{absent: 1000, settle: time.Minute, count: 20 * time.Second, cycles: 7}, 3)
}

func casesOf(s size, rounds int) []harness.Case {
	plain, direct := cluster.Server{Name: cluster.Embedded, Plain: true}, cluster.Server{Name: cluster.Embedded}
	var metrics []harness.Metric
	var targets []harness.Target
	for _, n := range concurrency {
		metrics = append(metrics, harness.BenchmarkMetrics(costName(n))...)
		targets = append(targets, harness.Target{Metric: costName(n), AtMost: 10}, harness.Target{Metric: costName(n) + harness.Requests})
	}
	lease := informers.Leases(dynamicinformer.WithAllowAbsent())
	return []harness.Case{
		{
			Name: "cost", Title: "Acquire and Release of a synced type that has another lease",
			Rounds: rounds, Start: plain.Start, Metrics: metrics,
			Contestants: []harness.Contestant{gvrkit(s.cost, targets...)},
		},
		{
			Name: "absent", Title: fmt.Sprintf("%d informers on types that are not served; requests are counted for %v after %v", s.absent, s.count, s.settle),
			Rounds: rounds, Start: plain.Start,
			Contestants: []harness.Contestant{
				{Name: "client-go", About: "client-go's dynamicinformer: ForResource and Start", Measure: harness.On(s.measureAbsent(informers.ClientGo))},
				gvrkit(s.measureAbsent(lease), harness.Target{Metric: requestRate}, harness.Target{Metric: absentMemory, AtMost: 12}, harness.Target{Metric: handlerMemory, AtMost: 25}),
			},
			Metrics: []harness.Metric{
				{Name: startRequests, Format: "%.0f"},
				{Name: requestRate, Format: "%.1f /s"},
				{Name: absentMemory, Format: "%.1f KB"},
				{Name: handlerMemory, Format: "%.1f KB"},
				{Name: absentGoroutines, Format: "%.1f"},
			},
		},
		{
			Name: "back", Title: fmt.Sprintf("a type is deleted and created again, %d times per run", s.cycles),
			Rounds: rounds, Start: direct.Start,
			Contestants: []harness.Contestant{
				{Name: "restarted", About: "client-go's dynamicinformer, stopped and started by an informer on CRDs", Measure: harness.On(s.measureBack(openRestarted))},
				gvrkit(s.measureBack(lease)),
			},
			Metrics: []harness.Metric{{Name: readyToSynced, Format: "%.1f ms"}, {Name: readyToSynced + worst, Format: "%.1f ms"}},
		},
	}
}

func gvrkit(m measure, targets ...harness.Target) harness.Contestant {
	return harness.Contestant{Name: "gvrkit", About: "gvrkit's NewForConfig: Acquire with WithAllowAbsent", Targets: targets, Measure: harness.On(m)}
}

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
