// Package discovery compares implementations of discovery: the start, the cost of an answer, and
// the time until a new type is found. A run checks every answer.
package discovery

import (
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
)

// size is the amount of work of a run. On a server without CRDs, it measures only the start.
type size struct {
	cluster.Server

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
				Server: cluster.Server{Name: cluster.KubeAPIServer, Plain: true, Size: cluster.Size{CRDs: 300, SchemaBytes: 100_000}},
				idle:   700 * time.Millisecond, poll: 100 * time.Millisecond, asks: 1000,
			}
			rounds := 5
			if quick {
				s.Name, s.CRDs, rounds = cluster.Embedded, 30, 2
			}
			without := s
			without.CRDs = 0
			return []harness.Case{without.newCase(rounds), s.newCase(rounds)}
		},
	}
}

func (s size) newCase(rounds int) harness.Case {
	return harness.Case{
		Name: fmt.Sprintf("%s-%d-crds", s.Name, s.CRDs), Rounds: rounds, Metrics: s.metrics(), Contestants: s.contestants(), Start: s.Start,
		Title: fmt.Sprintf("%s with %d CRDs of %d KB each, and %d answers about a type that is not served", s.Name, s.CRDs, s.SchemaBytes/1000, s.asks),
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

	mapping = "RESTMapping"
	ofKind  = "ResolveGVK, or RESTMapping"
	ofName  = "Resolve, or ResourceFor"

	noticed = "unknown type, noticed when it comes"
	arrival = "new type, awaited or polled"
)

// known has the questions about a known type.
var known = []string{mapping, ofKind, ofName}

func (s size) metrics() []harness.Metric {
	all := []harness.Metric{
		{Name: firstAnswer, Format: "%.1f ms"},
		{Name: firstRequests, Format: "%.0f"},
		{Name: allAnswers, Format: "%.1f ms"},
		{Name: allRequests, Format: "%.0f"},
		{Name: restRequests, Format: "%.0f"},
		{Name: restBytes, Format: "%.2f MB"},
		{Name: restCPU, Format: "%.1f ms"},
		{Name: peakRSS, Format: "%.0f MiB"},
		{Name: heap, Format: "%.0f KB"},
	}
	if s.CRDs == 0 {
		return all
	}
	for _, name := range known {
		all = append(all, harness.BenchmarkMetrics(name)...)
	}
	return append(all,
		harness.Metric{Name: noticed, Format: "%.1f µs"},
		harness.Metric{Name: noticed + harness.Requests, Format: "%.0f"},
		harness.Metric{Name: arrival, Format: "%.1f ms"},
		harness.Metric{Name: arrival + harness.Requests, Format: "%.0f"},
	)
}
