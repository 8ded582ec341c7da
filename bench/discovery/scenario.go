// Package discovery compares ways to learn what an API server serves: how they start, what an
// answer costs, and when they notice a new type. Every answer is checked.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
)

// plain is the part of a run on a server without CRDs, of which only the start is measured. The
// other part, without a name, is on a server with many.
const plain = "plain"

// Params are the parameters of one run.
type Params struct {
	Host string `json:"host"`
	CRDs int    `json:"crds"`
	// Rest is how long a system must not have sent a request to be at rest. gvrkit may ask
	// again after half a second.
	Rest time.Duration `json:"restNanos"`
	// Poll is the interval at which a system that cannot wait for a new type asks for it.
	Poll time.Duration `json:"pollNanos"`
	// Asks is how many answers are one measurement.
	Asks int `json:"asks"`
}

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{
		Name: "discovery", About: "ways to learn what a server serves: start, answers, and new types",
		Cases: func(quick bool) []harness.Case {
			if quick {
				return []harness.Case{newCase(30, 2)}
			}
			return []harness.Case{newCase(300, 5)}
		},
		Measure: measure,
	}
}

func newCase(crds, rounds int) harness.Case {
	const asks, schemaBytes = 1000, 100_000
	c := harness.Case{
		Name: fmt.Sprintf("%d-crds", crds), Rounds: rounds, Parts: []string{plain, ""}, Metrics: metrics(asks),
		Title: fmt.Sprintf("a server without CRDs (plain), and one with %d CRDs of %d KB each", crds, schemaBytes/1000),
		Pairs: []harness.Pair{{Of: "gvrkit", To: "controller-runtime"}},
		Finish: func(f harness.Figures) {
			for _, name := range []string{heap, heapFull} {
				if _, measured := f[name]; measured {
					f[name+" per CRD"] = (f[name] - f[plain+": "+name]) / float64(crds)
				}
			}
		},
		Start: func(ctx context.Context, _ io.Writer) (*harness.Fixture, error) {
			few, err := stub.Start(ctx, stub.Config{})
			if err != nil {
				return nil, err
			}
			many, err := stub.Start(ctx, stub.Config{CRDs: crds, SchemaBytes: schemaBytes})
			if err != nil {
				return nil, errors.Join(err, few.Stop())
			}
			params := Params{Host: few.Host, Rest: 700 * time.Millisecond, Poll: 100 * time.Millisecond, Asks: asks}
			full := params
			full.Host, full.CRDs = many.Host, crds
			return &harness.Fixture{
				Params: map[string]any{plain: params, "": full},
				Stop:   func() error { return errors.Join(few.Stop(), many.Stop()) },
			}, nil
		},
	}
	for _, s := range systems() {
		c.Contestants = append(c.Contestants, s.Contestant)
	}
	return c
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
	heap          = "retained heap"
	heapFull      = "retained heap, asked in every way"

	mapping  = "RESTMapping"
	ofKind   = "ResolveGVK, or RESTMapping"
	ofName   = "Resolve, or ResourceFor"
	allocs   = ", allocations"
	requests = ", requests"

	unknown = "unknown type"
	noticed = "unknown type, noticed when it comes"
	polled  = "new type, polled"
	awaited = "new type, awaited or polled"
)

func metrics(asks int) []harness.Metric {
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
		{Name: heap + " per CRD", Format: "%.2f KB"},
		{Name: heapFull, Format: "%.0f KB"},
		{Name: heapFull + " per CRD", Format: "%.2f KB"},
	}
	section := "an answer about a known type"
	for _, name := range []string{mapping, ofKind, ofName} {
		all = append(all,
			harness.Metric{Name: name, Format: "%.2f µs", Section: section}.Limit(1),
			harness.Metric{Name: name + allocs, Format: "%.2f"}.Limit(1),
			harness.Metric{Name: name + requests, Format: "%.0f"}.Limit(0),
		)
		section = ""
	}
	section = fmt.Sprintf("%d answers about a type that is not served", asks)
	for _, name := range []string{unknown, noticed} {
		all = append(all,
			harness.Metric{Name: name, Format: "%.1f µs", Section: section},
			harness.Metric{Name: name + requests, Format: "%.0f"},
		)
		section = ""
	}
	section = "from Established to the first answer"
	for _, name := range []string{awaited, polled} {
		all = append(all,
			harness.Metric{Name: name, Format: "%.1f ms", Section: section},
			harness.Metric{Name: name + requests, Format: "%.0f"},
		)
		section = ""
	}
	return all
}
