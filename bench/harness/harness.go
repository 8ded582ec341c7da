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
	"fmt"
	"io"
	"slices"
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
	Name string
	// About describes the scenario in one line.
	About string
	// Cases returns the cases, the same ones in each process. A quick run has fewer or smaller
	// cases.
	Cases func(quick bool) []Case
}

// Case is one server, or several, with the contestants that are measured against it.
type Case struct {
	Name string `json:"name"`
	// Title describes the case in one line.
	Title string `json:"title"`
	// Contestants are in the order of the report. The first one is the reference: ratios are
	// relative to it.
	Contestants []Contestant `json:"contestants"`
	Metrics     []Metric     `json:"metrics"`

	// Rounds is the number of rounds that count.
	Rounds int `json:"-"`
	// Parts are the parts of a run, which are measured one after another, each in a process of
	// its own. The figures of a part with a name begin with that name, as in "part: figure".
	// A case without parts has one part without a name.
	Parts []string `json:"-"`
	// Start starts the servers. It writes lines about long steps to progress.
	Start func(ctx context.Context, progress io.Writer) (*Servers, error) `json:"-"`
}

// Contestant is one of the systems that are compared.
type Contestant struct {
	Name string `json:"name"`
	// About describes it in a few words.
	About string `json:"about"`
	// Target means that the targets of metrics apply to it.
	Target bool `json:"target,omitempty"`
	// Env is added to the environment of its processes.
	Env []string `json:"-"`
	// Measure runs a job, in a process of its own.
	Measure func(ctx context.Context, job Job) (Figures, error) `json:"-"`
}

// Metric is one measured quantity.
type Metric struct {
	Name string `json:"name"`
	// Section is the heading of this metric and of those that follow it.
	Section string `json:"section,omitempty"`
	// Format prints a value with its unit.
	Format string `json:"format"`
	// AtMost is the target; nil is none. RatioAtMost is the target of the ratio to the
	// reference; 0 is none.
	AtMost      *float64 `json:"atMost,omitempty"`
	RatioAtMost float64  `json:"ratioAtMost,omitempty"`
}

// Limit returns m with a target.
func (m Metric) Limit(atMost float64) Metric {
	m.AtMost = &atMost
	return m
}

// Servers are the running servers of a case.
type Servers struct {
	// Connection tells clients how to reach the servers. Processes get it as JSON.
	Connection any
	// Stop ends the servers.
	Stop func() error
}

// Job is one run of one contestant, or a part of it.
type Job struct {
	Scenario   string `json:"scenario"`
	Quick      bool   `json:"quick"`
	Case       string `json:"case"`
	Contestant string `json:"contestant"`
	Part       string `json:"part,omitempty"`
	// Round is the number of the round: 0 for the warm-up, then 1 to Rounds.
	Round  int `json:"round"`
	Rounds int `json:"rounds"`
	// Connection is that of [Servers].
	Connection json.RawMessage `json:"connection"`
}

// On returns the Measure of a contestant, on servers whose Connection is a C.
func On[C any](measure func(ctx context.Context, job Job, servers C) (Figures, error)) func(context.Context, Job) (Figures, error) {
	return func(ctx context.Context, job Job) (Figures, error) {
		var servers C
		if err := json.Unmarshal(job.Connection, &servers); err != nil {
			return nil, fmt.Errorf("connection to the servers of %s: %w", job.Scenario, err)
		}
		return measure(ctx, job, servers)
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
