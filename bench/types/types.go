// Package types compares the start of programs that watch one type or all types of an API server
// with many CustomResourceDefinitions.
package types

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{Name: "types", About: "the start of programs that watch one type or all types of a server with many CRDs", Cases: cases}
}

// The names of metrics.
const (
	returned    = "until its wait returns"
	synced      = "until the last has synced"
	returnedCPU = "CPU until its wait returns"
	restCPU     = "CPU until at rest"
	beforeList  = "requests before the first list"
	bytesRead   = "discovery read"
	documents   = "document requests"
	definitions = "CRD and APIService requests"
	lists       = "requests for objects"
)

func cases(quick bool) []harness.Case {
	servers, crds, rounds := []string{cluster.Embedded, cluster.KubeAPIServer}, 200, 5
	if quick {
		servers, crds, rounds = servers[:1], 30, 2
	}
	var all []harness.Case
	for _, name := range servers {
		for _, schemaBytes := range []int{300, 84_000} {
			server := cluster.Server{Name: name, Size: cluster.Size{CRDs: crds, SchemaBytes: schemaBytes, Objects: 5}}
			all = append(all, newCase(server, 1, rounds), newCase(server, crds, rounds))
		}
	}
	return all
}

// newCase returns the case of a program that watches this number of types.
func newCase(server cluster.Server, watched, rounds int) harness.Case {
	return harness.Case{
		Name: fmt.Sprintf("%s-%d-%d-%d", server.Name, server.CRDs, server.SchemaBytes, watched), Rounds: rounds,
		Title: fmt.Sprintf("%d of %d types of %s, each with schemas of %d bytes and %d objects",
			watched, server.CRDs, server.Name, server.SchemaBytes, server.Objects),
		Contestants: contestants(system{Size: server.Size, watched: watched, idle: 700 * time.Millisecond}), Start: server.Start,
		Metrics: []harness.Metric{
			{Name: returned, Format: "%.1f ms"},
			{Name: synced, Format: "%.1f ms"},
			{Name: returnedCPU, Format: "%.1f ms"},
			{Name: restCPU, Format: "%.1f ms"},
			{Name: beforeList, Format: "%.0f"},
			{Name: bytesRead, Format: "%.0f KB"},
			{Name: documents, Format: "%.0f"},
			{Name: definitions, Format: "%.0f"},
			{Name: lists, Format: "%.0f"},
		},
	}
}

func contestants(s system) []harness.Contestant {
	add := func(name, about string, open informers.Open, targets ...harness.Target) harness.Contestant {
		s.open = open
		return harness.Contestant{Name: name, About: about, Targets: targets, Measure: harness.On(s.measure)}
	}
	targets := []harness.Target{{Metric: beforeList, AtMost: 4}, {Metric: bytesRead, AtMost: 400}, {Metric: returned, AtMost: 20}, {Metric: restCPU, AtMost: 2, To: "client-go"}}
	if s.watched > 1 {
		targets[2], targets[3].AtMost = harness.Target{Metric: returned, AtMost: .8, To: "client-go"}, 1
	}
	return []harness.Contestant{
		add("client-go", "dynamicinformer: ForResource of each type, Start, WaitForCacheSync, which polls each 0.1 s", informers.ClientGo),
		add("Acquire", "gvrkit's NewForConfig: Start, Acquire of each type, WaitForSync", informers.Leases(nil), targets...),
		add("ForResource", "gvrkit's NewForConfig: ForResource of each type, Start, WaitForSync", informers.GVRKit(), targets...),
		add("no discovery", "the same with WithDiscovery(nil)", informers.GVRKit(dynamicinformer.WithDiscovery(nil))),
	}
}

// system is an implementation of informers, on a server of a given size.
type system struct {
	cluster.Size

	watched int           // types
	idle    time.Duration // without requests and reads, until the system is at rest
	open    informers.Open
}

func (s system) measure(ctx context.Context, _ harness.Job, server cluster.Connection) (figures harness.Figures, err error) {
	types := cluster.Definitions(s.watched)
	cfg := server.Config()
	traffic := usage.Count(cfg)
	begin, cpu := time.Now(), usage.CPU()
	figures = harness.Figures{}
	return figures, s.open.Use(ctx, cfg, func(ctx context.Context, set *informers.Set) (err error) {
		all := make([]cache.SharedIndexInformer, len(types))
		for i, d := range types {
			if all[i], err = set.Add(ctx, d.Types[0].GVR); err != nil {
				return err
			}
		}
		set.Start()
		last := whenSynced(ctx, all)
		if err := set.Wait(ctx); err != nil {
			return err
		}
		figures[returned], figures[returnedCPU] = harness.Millis(time.Since(begin)), harness.Millis(usage.CPU()-cpu)
		figures[synced] = harness.Millis((<-last).Sub(begin))
		if err := traffic.WaitIdle(ctx, s.idle); err != nil {
			return fmt.Errorf("wait until at rest: %w", err)
		}
		figures[restCPU] = harness.Millis(usage.CPU() - cpu)
		counts := traffic.Counts()
		figures[documents], figures[definitions], figures[lists] = float64(counts.Documents), float64(counts.Definitions), float64(counts.Objects)
		figures[beforeList], figures[bytesRead] = float64(counts.First), float64(counts.Bytes)/1e3
		for i, informer := range all {
			if got := len(informer.GetStore().ListKeys()); got != s.Objects {
				return fmt.Errorf("%s has %d objects, want %d", types[i].Name(), got, s.Objects)
			}
		}
		return nil
	})
}

// whenSynced returns a channel that gets the time when the last informer has synced or ctx has
// ended.
func whenSynced(ctx context.Context, all []cache.SharedIndexInformer) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		for _, informer := range all {
			select {
			case <-informer.HasSyncedChecker().Done():
			case <-ctx.Done():
			}
		}
		at <- time.Now()
	}()
	return at
}
