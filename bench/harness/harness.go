// Package harness compares contestants: it measures each in a process of its own, and reports
// figures and their ratios.
//
// A [Scenario] has cases; a [Case] is one server with the contestants that are measured
// against it. [Run] measures rounds: each round measures every contestant once and begins with
// another one. The first round is a warm-up and does not count. A ratio compares figures of the
// same round, because another load of the machine affects both in the same way. The report has
// medians of all rounds.
//
// The package knows nothing about Kubernetes.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"
)

// Figures are the measurements of one run, by the names of their metrics. A metric that was
// not measured is absent.
type Figures map[string]float64

// Millis returns d in milliseconds, the unit of most figures.
func Millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Micros returns d in microseconds, divided by n.
func Micros(d time.Duration, n int) float64 {
	return float64(d) / float64(time.Microsecond) / float64(n)
}

// Scenario is a group of cases.
type Scenario struct {
	Name, About string // a name, and a description in one line
	// Cases returns the cases, the same ones in each process. A quick run has fewer or smaller
	// cases.
	Cases func(quick bool) []Case
}

// Case is one server with the contestants that are measured against it.
type Case struct {
	Name string `json:"name"`
	// Title describes the case in one line.
	Title string `json:"title"`
	// Contestants are in the order of the report. The first one is the reference: ratios are
	// relative to it.
	Contestants []Contestant `json:"contestants"`
	Metrics     []Metric     `json:"metrics"`
	// Plot means that the case has a chart of the ratios of all metrics without More.
	Plot bool `json:"plot,omitempty"`

	// Rounds is the number of rounds that count.
	Rounds int `json:"-"`
	// Start starts the server, and writes lines about long steps to progress. The connection, which
	// processes get as JSON, tells clients how to reach the server.
	Start func(ctx context.Context, progress io.Writer) (connection any, stop func() error, err error) `json:"-"`
}

// Contestant is one of the systems that are compared.
type Contestant struct {
	Name  string `json:"name"`
	About string `json:"about"` // a few words
	// Beside names another contestant: the report has also the ratios to it.
	Beside  string   `json:"beside,omitempty"`
	Targets []Target `json:"targets,omitempty"`
	// Env is added to the environment of its processes.
	Env []string `json:"-"`
	// Measure runs a job, in a process of its own.
	Measure func(ctx context.Context, job Job) (Figures, error) `json:"-"`
}

// Metric is one measured quantity.
type Metric struct {
	Name string `json:"name"`
	// Format prints a value with its unit.
	Format string `json:"format"`
	// More means that greater values are better.
	More bool `json:"more,omitempty"`
}

// Target is a limit of a median.
type Target struct {
	Metric string  `json:"metric"`
	AtMost float64 `json:"atMost"`
	// AtLeast, if it is not zero, is the limit instead of AtMost.
	AtLeast float64 `json:"atLeast,omitempty"`
	// To names a contestant: the limit is that of the ratio to it. It may be empty.
	To string `json:"to,omitempty"`
}

// Job is one run of one contestant.
type Job struct {
	Scenario string `json:"scenario"`
	Quick    bool   `json:"quick"`
	// Case and Contestant are indexes.
	Case       int `json:"case"`
	Contestant int `json:"contestant"`
	// Round is the number of the round: 0 for the warm-up, then 1 to Rounds.
	Round  int `json:"round"`
	Rounds int `json:"rounds"`
	// Connection is that of Start.
	Connection json.RawMessage `json:"connection"`
}

// On returns the Measure of a contestant, on a server whose Connection is a C.
func On[C any](measure func(ctx context.Context, job Job, server C) (Figures, error)) func(context.Context, Job) (Figures, error) {
	return func(ctx context.Context, job Job) (Figures, error) {
		var server C
		if err := json.Unmarshal(job.Connection, &server); err != nil {
			return nil, fmt.Errorf("connection to the server of %s: %w", job.Scenario, err)
		}
		return measure(ctx, job, server)
	}
}

// Find returns the element with this name.
func Find[T any](all []T, name string, nameOf func(T) string) (T, error) {
	var names []string
	for _, v := range all {
		names = append(names, nameOf(v))
	}
	if at := slices.Index(names, name); at >= 0 {
		return all[at], nil
	}
	var none T
	return none, fmt.Errorf("unknown name %q; known are %q", name, names)
}

// The suffixes of the names of [Benchmark]'s metrics.
const (
	Allocations = ", allocations"
	Requests    = ", requests"
)

// BenchmarkMetrics returns the metrics of [Benchmark].
func BenchmarkMetrics(name string) []Metric {
	return []Metric{{Name: name, Format: "%.2f µs"}, {Name: name + Allocations, Format: "%.2f"}, {Name: name + Requests, Format: "%.0f"}}
}

// Benchmark measures n calls of a function: the time and allocations of one call, and the requests of all.
func (f Figures) Benchmark(name string, requests func() float64, calls func(n int) error) (err error) {
	before := requests()
	result := testing.Benchmark(func(b *testing.B) { //nolint:thelper // not a test helper
		err = errors.Join(err, calls(b.N))
	})
	f[name], f[name+Allocations], f[name+Requests] = Micros(result.T, result.N), float64(result.AllocsPerOp()), requests()-before
	return err
}
