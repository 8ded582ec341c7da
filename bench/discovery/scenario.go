// Package discovery compares implementations of discovery: the start, the cost of an answer, and
// the time until a new type is found. A run checks every answer.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
)

// plain is the part of a run on a server without CRDs, which measures only the start. The other
// part, without a name, is on a server with many CRDs.
const plain = "plain"

// size is the amount of work of a run.
type size struct {
	server string // embedded or kube-apiserver
	cluster.Size

	// idle is the time without requests until a system is at rest. gvrkit may send another
	// request after half a second.
	idle time.Duration
	// poll is the interval of questions to a system that can't wait for a new type.
	poll time.Duration
	// asks is the number of questions about a type that is not served.
	asks int
}

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{
		Name: "discovery", About: "implementations of discovery: start, answers, and new types",
		Cases: func(quick bool) []harness.Case {
			s := size{
				server: cluster.KubeAPIServer, Size: cluster.Size{CRDs: 300, SchemaBytes: 100_000},
				idle: 700 * time.Millisecond, poll: 100 * time.Millisecond, asks: 1000,
			}
			rounds := 5
			if quick {
				s.server, s.CRDs, rounds = cluster.Embedded, 30, 2
			}
			return []harness.Case{s.newCase(rounds)}
		},
	}
}

func (s size) newCase(rounds int) harness.Case {
	return harness.Case{
		Name: fmt.Sprintf("%s-%d-crds", s.server, s.CRDs), Rounds: rounds, Parts: []string{plain, ""}, Metrics: s.metrics(),
		Title:       fmt.Sprintf("%s without CRDs (plain), and with %d CRDs of %d KB each", s.server, s.CRDs, s.SchemaBytes/1000),
		Contestants: s.contestants(),
		Start: func(ctx context.Context, progress io.Writer) (*harness.Servers, error) {
			few, err := cluster.StartPlain(ctx, s.server, progress, cluster.Size{})
			if err != nil {
				return nil, err
			}
			many, err := cluster.StartPlain(ctx, s.server, progress, s.Size)
			if err != nil {
				return nil, errors.Join(err, few.Stop())
			}
			return &harness.Servers{
				Connection: map[string]any{plain: few.Connection, "": many.Connection},
				Stop:       func() error { return errors.Join(few.Stop(), many.Stop()) },
			}, nil
		},
	}
}

// The names of metrics.
const (
	firstAnswer   = "first answer"
	firstRequests = "requests until then"
	allAnswers    = "all types answered"
	allRequests   = "requests until all are"
	restRequests  = "requests until at rest"
	restBytes     = "received until at rest"
	restCPU       = "CPU until at rest"
	peakRSS       = "peak RSS"
	heap          = "retained heap, asked in every way"

	mapping  = "RESTMapping"
	ofKind   = "ResolveGVK, or RESTMapping"
	ofName   = "Resolve, or ResourceFor"
	allocs   = ", allocations"
	requests = ", requests"

	noticed = "unknown type, noticed when it comes"
	arrival = "new type, awaited or polled"
)

func (s size) metrics() []harness.Metric {
	all := []harness.Metric{
		{Name: plain + ": " + firstAnswer, Format: "%.1f ms", Section: "start: one type, without CRDs"},
		{Name: plain + ": " + firstRequests, Format: "%.0f"},
		{Name: plain + ": " + restRequests, Format: "%.0f"},
		{Name: firstAnswer, Format: "%.1f ms", Section: "start: one type and then all, with CRDs"},
		{Name: firstRequests, Format: "%.0f"},
		{Name: allAnswers, Format: "%.1f ms"},
		{Name: allRequests, Format: "%.0f"},
		{Name: restRequests, Format: "%.0f"},
		{Name: restBytes, Format: "%.2f MB"},
		{Name: restCPU, Format: "%.1f ms"},
		{Name: peakRSS, Format: "%.0f MiB"},
		{Name: plain + ": " + heap, Format: "%.0f KB", Section: "memory"},
		{Name: heap, Format: "%.0f KB"},
	}
	known := len(all)
	for _, name := range []string{mapping, ofKind, ofName} {
		all = append(all,
			harness.Metric{Name: name, Format: "%.2f µs"}.Limit(1),
			harness.Metric{Name: name + allocs, Format: "%.2f"}.Limit(1),
			harness.Metric{Name: name + requests, Format: "%.0f"}.Limit(0),
		)
	}
	all[known].Section = "an answer about a known type"
	return append(all,
		harness.Metric{Name: noticed, Format: "%.1f µs", Section: fmt.Sprintf("%d answers about a type that is not served", s.asks)},
		harness.Metric{Name: noticed + requests, Format: "%.0f"},
		harness.Metric{Name: arrival, Format: "%.1f ms", Section: "from Established to the first answer"},
		harness.Metric{Name: arrival + requests, Format: "%.0f"},
	)
}
