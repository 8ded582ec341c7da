// Package cache compares caches of one resource: what it costs to fill them, to keep them, and
// to follow changes. After the first list and after the changes every cached object is compared
// with the result of client-go's decoder; a difference fails the whole run.
package cache

import (
	"context"
	"fmt"
	"io"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
)

// Params are the parameters of one run.
type Params struct {
	Kind string `json:"kind"`
	// Objects is how many objects the server has, and Events how many changes follow.
	Objects int    `json:"objects"`
	Events  int    `json:"events"`
	Host    string `json:"host"`
}

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{
		Name: "cache", About: "caches of one resource: the first list, memory, and changes",
		Cases: cases, Measure: measure,
	}
}

// The names of metrics.
const (
	syncCPU      = "sync CPU"
	eventCPU     = "event CPU"
	eventRate    = "events/s"
	allocations  = "allocations"
	retainedHeap = "retained heap"
	peakRSS      = "peak RSS"
	fullGC       = "one full GC"
)

func metrics() []harness.Metric {
	return []harness.Metric{
		{Name: syncCPU, Format: "%.0f µs/object"},
		{Name: eventCPU, Format: "%.0f µs/event"},
		{Name: eventRate, Format: "%.0f", More: true},
		{Name: allocations, Format: "%.0f /object"},
		{Name: retainedHeap, Format: "%.0f B/object"},
		{Name: peakRSS, Format: "%.0f MiB"},
		{Name: fullGC, Format: "%.1f ms"},
	}
}

func cases(quick bool) []harness.Case {
	var all []harness.Case
	for _, kind := range objects.All() {
		if quick {
			all = append(all, newCase(kind, 1000, 1000, 3))
			continue
		}
		all = append(all, newCase(kind, 1000, 5000, 5), newCase(kind, 10_000, 5000, 5))
	}
	return all
}

// newCase returns a case of n objects. The server makes changes as fast as a contestant reads.
func newCase(kind objects.Kind, n, events, rounds int) harness.Case {
	c := harness.Case{
		Name:    fmt.Sprintf("%s-%d", kind.Name, n),
		Title:   fmt.Sprintf("%d objects of kind %s, %d events", n, kind.Name, events),
		Metrics: metrics(), Plot: true, Rounds: rounds,
	}
	for _, s := range systems() {
		c.Contestants = append(c.Contestants, s.Contestant)
	}
	c.Start = func(ctx context.Context, _ io.Writer) (*harness.Fixture, error) {
		server, err := stub.Start(ctx, stub.Config{Kind: kind.Name, Objects: n})
		if err != nil {
			return nil, err
		}
		return &harness.Fixture{
			Params: map[string]any{"": Params{Host: server.Host, Kind: kind.Name, Objects: n, Events: events}}, Stop: server.Stop,
			Ready: func(ctx context.Context) error { return server.Change(ctx, events) },
		}, nil
	}
	return c
}
