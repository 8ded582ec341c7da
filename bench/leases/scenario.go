// Package leases compares informers on types that are not served, or that are deleted and created
// again, and measures the cost of a lease.
package leases

import (
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
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
	lease := informers.Leases(dynamicinformer.WithAllowAbsent())
	return []harness.Case{
		{
			Name: "cost", Title: "Acquire and Release of a synced type that has another lease",
			Rounds: rounds, Start: plain.Start, Metrics: costMetrics(),
			Contestants: []harness.Contestant{gvrkit(s.cost, costTargets()...)},
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

func costMetrics() (all []harness.Metric) {
	for _, n := range concurrency {
		all = append(all, harness.BenchmarkMetrics(costName(n))...)
	}
	return all
}

func costTargets() (all []harness.Target) {
	for _, n := range concurrency {
		all = append(all, harness.Target{Metric: costName(n), AtMost: 10}, harness.Target{Metric: costName(n) + harness.Requests})
	}
	return all
}
