// Package types compares what the start of a program costs that watches few or many types of
// an API server with many CustomResourceDefinitions.
package types

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// objectsPerType is how many objects each type has.
const objectsPerType = 5

// Params are the parameters of one run.
type Params struct {
	Server cluster.Connection `json:"server"`
	// Types is how many types are watched, and Objects how many objects each has.
	Types   int `json:"types"`
	Objects int `json:"objects"`
	// Rest is how long a program must not have sent or read anything to be at rest.
	Rest time.Duration `json:"restNanos"`
}

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{
		Name: "types", About: "the start of programs that watch few or many types of a server with many CRDs",
		Cases: cases, Measure: measure,
	}
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
			all = append(all, newCase(server, crds, schemaBytes, rounds))
		}
	}
	return all
}

// partOf returns the name of the part in which so many types are watched.
func partOf(types int) string {
	if types == 1 {
		return "1 type"
	}
	return fmt.Sprintf("%d types", types)
}

// newCase returns a case with two parts: programs that watch one type, and all of them.
func newCase(server string, crds, schemaBytes, rounds int) harness.Case {
	c := harness.Case{
		Name: fmt.Sprintf("%s-%d-%d", server, crds, schemaBytes), Rounds: rounds,
		Title: fmt.Sprintf("%s with %d CRDs, which have schemas of %d bytes and %d objects each", server, crds, schemaBytes, objectsPerType),
	}
	params := map[string]any{}
	for _, types := range []int{1, crds} {
		c.Parts = append(c.Parts, partOf(types))
		c.Metrics = append(c.Metrics, metrics(types)...)
	}
	for _, s := range systems() {
		c.Contestants = append(c.Contestants, s.Contestant)
	}
	c.Start = func(ctx context.Context, progress io.Writer) (*harness.Fixture, error) {
		s, err := cluster.Start(ctx, server, progress)
		if err != nil {
			return nil, err
		}
		if err := fill(ctx, s.Connection, crds, schemaBytes); err != nil {
			return nil, errors.Join(fmt.Errorf("fill the server: %w", err), s.Stop())
		}
		for _, types := range []int{1, crds} {
			params[partOf(types)] = Params{Server: s.Connection, Types: types, Objects: objectsPerType, Rest: 700 * time.Millisecond}
		}
		return &harness.Fixture{Params: params, Stop: s.Stop}, nil
	}
	return c
}

// metrics are those of programs that watch so many types.
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

// fill installs CRDs and creates their objects.
func fill(ctx context.Context, server cluster.Connection, crds, schemaBytes int) error {
	const writers, settle = 16, 5 * time.Second // servers build documents after CRDs have come
	all := make([]*unstructured.Unstructured, crds)
	for i, d := range stub.Definitions(crds) {
		var err error
		if all[i], err = d.CRD(schemaBytes); err != nil {
			return err
		}
	}
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		return err
	}
	if err := server.InstallCRDs(ctx, all...); err != nil {
		return err
	}
	if err := usage.Sleep(ctx, settle-cluster.Settle); err != nil {
		return err
	}
	return cluster.InParallel(ctx, writers, crds*objectsPerType, func(ctx context.Context, i int) error {
		of := stub.NewDefinition(i / objectsPerType).Types[0]
		obj := of.Object(i % objectsPerType)
		_, err := client.Resource(of.GVR).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{})
		return err
	})
}
