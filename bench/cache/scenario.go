// Package cache compares caches of one resource: the CPU time and memory for the first list, for
// the cached objects and for changes. After the first list and after the changes, a run compares
// each cached object with the result of client-go's decoder, and fails if they differ.
package cache

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{Name: "cache", About: "caches of one resource: the first list, memory, and changes", Cases: cases}
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

func cases(quick bool) []harness.Case {
	var all []harness.Case
	for _, kind := range objects.All() {
		if quick {
			all = append(all, newCase(load{kind, 1000, 1000}, 3))
			continue
		}
		all = append(all, newCase(load{kind, 1000, 5000}, 5), newCase(load{kind, 10_000, 5000}, 5))
	}
	return all
}

// newCase returns the case with a load. The server sends changes as fast as a contestant reads
// them.
func newCase(l load, rounds int) harness.Case {
	return harness.Case{
		Name:        fmt.Sprintf("%s-%d", l.kind.Name, l.objects),
		Title:       fmt.Sprintf("%d objects of kind %s, %d events", l.objects, l.kind.Name, l.events),
		Contestants: l.contestants(), Rounds: rounds,
		Metrics: []harness.Metric{
			{Name: syncCPU, Format: "%.0f µs/object"},
			{Name: eventCPU, Format: "%.0f µs/event"},
			{Name: eventRate, Format: "%.0f"},
			{Name: allocations, Format: "%.0f /object"},
			{Name: retainedHeap, Format: "%.0f B/object"},
			{Name: peakRSS, Format: "%.0f MiB"},
			{Name: fullGC, Format: "%.1f ms"},
		},
		Start: func(ctx context.Context, _ io.Writer) (any, func() error, error) {
			return stub.Start(ctx, stub.Config{Kind: l.kind.Name, Objects: l.objects})
		},
	}
}

func (l load) contestants() []harness.Contestant {
	add := func(name, about string, s system, env ...string) harness.Contestant {
		s.load = l
		return harness.Contestant{Name: name, About: about, Env: env, Measure: harness.On(s.measure)}
	}
	const listOnly = "KUBE_FEATURE_WatchListClient=false"
	withoutDiscovery := dynamicinformer.WithDiscovery(nil) // the server has none
	withoutManagedFields := dynamicinformer.WithClientOptions(dynamicclient.WithoutManagedFields())
	return []harness.Contestant{
		add("client-go", "client-go's dynamicinformer with defaults", system{open: informers.ClientGo}),
		add("client-go-list", "the same without watch-list", system{open: informers.ClientGo}, listOnly),
		add("client-go-stripped", "the same with a transform that deletes managedFields", system{open: informers.ClientGo, transform: strip, stripped: true}),
		add("gvrkit", "gvrkit's dynamicinformer with defaults", system{open: informers.GVRKit(withoutDiscovery)}),
		add("gvrkit-list", "the same without watch-list", system{open: informers.GVRKit(withoutDiscovery)}, listOnly),
		add("gvrkit-stripped", "the same with WithoutManagedFields", system{open: informers.GVRKit(withoutDiscovery, withoutManagedFields), stripped: true}),
	}
}

// strip deletes managedFields without decoding them.
func strip(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	}
	return obj, nil
}
