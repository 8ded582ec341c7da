// Package types compares the start of programs that watch one type or all types of an API server
// with many CustomResourceDefinitions.
package types

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
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
	for _, server := range servers {
		for _, schemaBytes := range []int{300, 84_000} {
			all = append(all, newCase(server, cluster.Size{CRDs: crds, SchemaBytes: schemaBytes, Objects: 5}, rounds))
		}
	}
	return all
}

// newCase returns a case with two parts: a program watches one type, or all types.
func newCase(server string, s cluster.Size, rounds int) harness.Case {
	c := harness.Case{
		Name: fmt.Sprintf("%s-%d-%d", server, s.CRDs, s.SchemaBytes), Rounds: rounds,
		Title:       fmt.Sprintf("%s with %d CRDs, each with schemas of %d bytes and %d objects", server, s.CRDs, s.SchemaBytes, s.Objects),
		Contestants: contestants(s, 700*time.Millisecond),
		Start: func(ctx context.Context, progress io.Writer) (*harness.Servers, error) {
			return cluster.Start(ctx, server, progress, s)
		},
	}
	for _, types := range []int{1, s.CRDs} {
		c.Parts = append(c.Parts, partOf(types))
		c.Metrics = append(c.Metrics, metrics(types)...)
	}
	return c
}

// partOf returns the name of the part that watches this number of types.
func partOf(types int) string {
	if types == 1 {
		return "1 type"
	}
	return fmt.Sprintf("%d types", types)
}

func contestants(s cluster.Size, idle time.Duration) []harness.Contestant {
	add := func(name, about string, target bool, open informers.Open) harness.Contestant {
		return harness.Contestant{Name: name, About: about, Target: target, Measure: harness.On(system{s, idle, open}.measure)}
	}
	return []harness.Contestant{
		add("client-go", "dynamicinformer: ForResource of each type, Start, WaitForCacheSync, which polls each 0.1 s", false, informers.ClientGo),
		add("Acquire", "gvrkit's NewForConfig: Start, Acquire of each type, WaitForSync", true, informers.Leases()),
		add("ForResource", "gvrkit's NewForConfig: ForResource of each type, Start, WaitForSync", true, informers.GVRKit()),
		add("no discovery", "the same with WithDiscovery(nil)", false, informers.GVRKit(dynamicinformer.WithDiscovery(nil))),
	}
}

// metrics returns the metrics of the part that watches this number of types.
func metrics(types int) []harness.Metric {
	all := []harness.Metric{
		{Name: returned, Format: "%.1f ms"},
		{Name: synced, Format: "%.1f ms"},
		{Name: returnedCPU, Format: "%.1f ms"},
		{Name: restCPU, Format: "%.1f ms", RatioAtMost: 1},
		harness.Metric{Name: beforeList, Format: "%.0f"}.Limit(4),
		harness.Metric{Name: bytesRead, Format: "%.0f KB"}.Limit(400),
		{Name: documents, Format: "%.0f"},
		{Name: definitions, Format: "%.0f"},
		{Name: lists, Format: "%.0f"},
	}
	if types == 1 {
		all[0], all[3].RatioAtMost = all[0].Limit(20), 2
	} else {
		all[0].RatioAtMost = .8
	}
	for i := range all {
		all[i].Name = partOf(types) + ": " + all[i].Name
	}
	return all
}
