// Package leases compares informers on types that are not served, that go and that come back,
// and measures what a lease costs.
package leases

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
)

// Params are the parameters of one run.
type Params struct {
	Case   string             `json:"case"`
	Server cluster.Connection `json:"server"`
	Size
}

// Size says how much is measured.
type Size struct {
	// Pairs is how many times a lease is acquired and released for one figure.
	Pairs int `json:"pairs"`
	// Absent is how many informers are on types that are not served. Settle is how long they
	// run before their requests are counted, and Count how long these are counted. client-go's
	// back-off grows for a minute.
	Absent int           `json:"absent"`
	Settle time.Duration `json:"settleNanos"`
	Count  time.Duration `json:"countNanos"`
	// Cycles is how many times a type with so many Objects goes and comes back, after one that
	// does not count.
	Cycles  int `json:"cycles"`
	Objects int `json:"objects"`
}

// short returns the size of the round that does not count.
func (s Size) short() Size {
	s.Settle, s.Count, s.Cycles = min(s.Settle, 5*time.Second), min(s.Count, time.Second), 1
	return s
}

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{
		Name: "leases", About: "leases, and informers on types that are not served, go and come back",
		Cases: cases, Measure: measure,
	}
}

// The names of cases.
const (
	costCase   = "cost"
	absentCase = "absent"
	backCase   = "back"
)

// The names of metrics. Those of costCase and backCase are made from parts.
const (
	startRequests    = "requests at the start"
	requestRate      = "requests then"
	absentMemory     = "memory per informer"
	handlerMemory    = "memory per handler"
	absentGoroutines = "goroutines per informer with a handler"

	allocs   = ", allocations"
	requests = ", requests"
	worst    = ", worst of a run"

	crdToDeleted     = "CRD deleted until the last OnDelete"
	crdToGone        = "CRD deleted until the informer knows"
	readyToListable  = "established until the server lists"
	readyToSynced    = "established until synced"
	listableToSynced = "the server lists until synced"
	createdToAdded   = "object created until its OnAdd"
)

// concurrency is in how many goroutines leases are acquired.
var concurrency = []int{1, 10, 100}

func costName(goroutines int) string { return fmt.Sprintf("%d at a time", goroutines) }

func cases(quick bool) []harness.Case {
	size, rounds := Size{Pairs: 100_000, Absent: 1000, Settle: time.Minute, Count: 20 * time.Second, Objects: 10, Cycles: 7}, 3
	if quick {
		size, rounds = Size{Pairs: 100_000, Absent: 200, Settle: 10 * time.Second, Count: 5 * time.Second, Objects: 10, Cycles: 3}, 1
	}
	var costs, times []harness.Metric
	for _, n := range concurrency {
		costs = append(costs,
			harness.Metric{Name: costName(n), Format: "%.2f µs"}.Limit(10),
			harness.Metric{Name: costName(n) + allocs, Format: "%.1f"},
			harness.Metric{Name: costName(n) + requests, Format: "%.0f"}.Limit(0),
		)
	}
	for _, name := range []string{crdToDeleted, crdToGone, readyToListable, readyToSynced, listableToSynced, createdToAdded} {
		for _, m := range []harness.Metric{{Name: name, Format: "%.1f ms"}, {Name: name + worst, Format: "%.1f ms"}} {
			if name == crdToDeleted || name == createdToAdded {
				m = m.Limit(100)
			}
			times = append(times, m)
		}
	}
	all := []harness.Case{
		newCase(costCase, "Acquire and Release of a type that has synced and that another lease holds", size, costs...),
		newCase(absentCase, fmt.Sprintf("%d informers on types that are not served; requests are counted for %v after %v", size.Absent, size.Count, size.Settle), size,
			harness.Metric{Name: startRequests, Format: "%.0f"},
			harness.Metric{Name: requestRate, Format: "%.1f /s"}.Limit(0),
			harness.Metric{Name: absentMemory, Format: "%.1f KB"}.Limit(12),
			harness.Metric{Name: handlerMemory, Format: "%.1f KB"}.Limit(25),
			harness.Metric{Name: absentGoroutines, Format: "%.1f"}),
		newCase(backCase, fmt.Sprintf("a type with %d objects goes and comes back, %d times a run; times below 0 precede the event that the benchmark sees", size.Objects, size.Cycles), size, times...),
	}
	for i := range all {
		all[i].Rounds = rounds
	}
	return all
}

// newCase returns a case on the stub, or on a real server if types have to go.
func newCase(name, title string, size Size, metrics ...harness.Metric) harness.Case {
	c := harness.Case{Name: name, Title: title, Metrics: metrics}
	for _, s := range systems() {
		if slices.Contains(s.cases, name) {
			c.Contestants = append(c.Contestants, s.Contestant)
		}
	}
	fixture := func(server cluster.Connection, stop func() error) *harness.Fixture {
		return &harness.Fixture{Params: map[string]any{"": Params{Case: name, Server: server, Size: size}}, Stop: stop}
	}
	c.Start = func(ctx context.Context, progress io.Writer) (*harness.Fixture, error) {
		if name == costCase || name == absentCase {
			server, err := stub.Start(ctx, stub.Config{})
			if err != nil {
				return nil, err
			}
			return fixture(cluster.Connection{Host: server.Host}, server.Stop), nil
		}
		server, err := cluster.Start(ctx, cluster.Embedded, progress)
		if err != nil {
			return nil, err
		}
		return fixture(server.Connection, server.Stop), nil
	}
	return c
}
