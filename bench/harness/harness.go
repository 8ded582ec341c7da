// Package harness measures contestants side by side, each run in a process of its own, and
// reports figures and their ratios.
//
// A [Scenario] has cases; a [Case] is one server with the contestants that are measured
// against it. [Run] takes turns: each round measures every contestant once and begins with
// another one. The first round does not count. Ratios are formed within a round and summed
// up over the rounds, so that whatever else the machine does affects both sides of a ratio.
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

// Scenario is a comparison.
type Scenario struct {
	Name string
	// About describes the scenario in one line.
	About string
	// Cases returns the cases, the same ones in each process. A quick run has fewer or smaller
	// ones.
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
	// Plot asks for a chart of the ratios of all metrics of which less is better.
	Plot bool `json:"plot,omitempty"`

	// Rounds is how many rounds count.
	Rounds int `json:"-"`
	// Parts are measured one after the other, each in a process of its own, and are one run
	// together. The figures of a part with a name begin with that name, as in "part: figure".
	// None is one part without a name.
	Parts []string `json:"-"`
	// Start starts the servers. progress takes lines about what takes long.
	Start func(ctx context.Context, progress io.Writer) (*Servers, error) `json:"-"`
}

// Contestant is one of the systems that are compared.
type Contestant struct {
	Name string `json:"name"`
	// About describes it in a few words.
	About string `json:"about"`
	// Target says that the targets of metrics apply to it.
	Target bool `json:"target,omitempty"`
	// Env is added to the environment of its processes.
	Env []string `json:"-"`
	// Measure does a job. It runs in a process of its own.
	Measure func(ctx context.Context, job Job) (Figures, error) `json:"-"`
}

// Metric is one measured quantity.
type Metric struct {
	Name string `json:"name"`
	// Section is the heading of this metric and of those that follow it.
	Section string `json:"section,omitempty"`
	// Format prints a value with its unit.
	Format string `json:"format"`
	// More says that more is better.
	More bool `json:"more,omitempty"`
	// AtMost is the target, if there is one. RatioAtMost is the target of the ratio to the
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
	// Reached says how clients reach them. Processes get it as JSON.
	Reached any
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
	// Round is the number of the round, from 0, which does not count, to Rounds.
	Round  int `json:"round"`
	Rounds int `json:"rounds"`
	// Servers is how the servers are reached.
	Servers json.RawMessage `json:"servers"`
}

// Reach decodes how the servers are reached into v.
func (j Job) Reach(v any) error {
	if err := json.Unmarshal(j.Servers, v); err != nil {
		return fmt.Errorf("the servers of %s: %w", j.Scenario, err)
	}
	return nil
}

// Find returns the element that name is the name of.
func Find[T any](all []T, name string, nameOf func(T) string) (T, error) {
	var names []string
	for _, v := range all {
		names = append(names, nameOf(v))
	}
	if at := slices.Index(names, name); at >= 0 {
		return all[at], nil
	}
	var none T
	return none, fmt.Errorf("%q is unknown; there are %q", name, names)
}
