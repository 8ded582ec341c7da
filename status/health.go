package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// HealthPolicy is what a health check requires of informers. The zero value requires that no informer has
// been degraded, and that no type has been gone.
type HealthPolicy struct {
	// Resources must have an informer each. If Resources is empty, Check checks all informers. Otherwise
	// it checks only the informers on these resources, also if their types have never been served.
	Resources []schema.GroupVersionResource
	// Ready also requires that informers on served types have synced.
	Ready bool
	// Tolerance is how long an informer may be not synced, or degraded. Less than zero: without a limit.
	Tolerance time.Duration
	// HandlerTimeout is how long a call of an event handler may last. Zero or less: without a limit.
	HandlerTimeout time.Duration
}

// Check returns nil or a [*HealthError] for informers at the time now. The problems are in the order of
// Resources without an informer, and then of informers.
func (p *HealthPolicy) Check(informers []Informer, now time.Time) error {
	e := &HealthError{}
	for _, gvr := range p.Resources {
		if !slices.ContainsFunc(informers, func(i Informer) bool { return i.GVR == gvr }) {
			e.add(gvr, "there is no informer on it")
		}
	}
	for n := range informers {
		if problem := p.problem(&informers[n], now); problem != "" {
			e.add(informers[n].GVR, problem)
		}
	}
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

// problem returns the problem of an informer, or "".
func (p *HealthPolicy) problem(i *Informer, now time.Time) string {
	named := slices.Contains(p.Resources, i.GVR)
	if len(p.Resources) > 0 && !named {
		return ""
	}
	if p.HandlerTimeout > 0 {
		for _, h := range i.Handlers {
			if !h.RunningSince.IsZero() && now.Sub(h.RunningSince) > p.HandlerTimeout {
				return h.Call(now)
			}
		}
	}
	switch {
	case i.State == StateSynced, i.State == StateNotServed && !named && !i.Listed:
		return ""
	case p.Ready && (!i.Listed || i.State == StateStopped), p.exceeds(i.Since, now):
		return i.Summary(now)
	case i.State == StateDegraded && p.exceeds(i.Quarantine.Since, now): // and requests fail, for less time
		return fmt.Sprintf("%s, objects are left out for %s (%s)", i.Summary(now), elapsed(i.Quarantine.Since, now), i.Quarantine.Text())
	}
	return ""
}

// exceeds reports whether a failure has lasted for longer than the tolerance. Since is its begin; zero: there is none.
func (p *HealthPolicy) exceeds(since, now time.Time) bool {
	return p.Tolerance >= 0 && !since.IsZero() && now.Sub(since) > p.Tolerance
}

// HealthError reports the problems of informers.
type HealthError struct {
	// Problems are the first problems, at most 20.
	Problems []HealthProblem
	// More is the number of further problems.
	More int
}

// HealthProblem is a problem of one informer, or of the factory.
type HealthProblem struct {
	GVR  schema.GroupVersionResource // empty: of the factory
	Text string
}

// maxProblems is the maximum number of HealthError.Problems.
const maxProblems = 20

func (e *HealthError) add(gvr schema.GroupVersionResource, text string) {
	if len(e.Problems) == maxProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, HealthProblem{gvr, text})
}

// Error implements error, with all problems in one line.
func (e *HealthError) Error() string { return strings.Join(e.Lines(), "; ") }

// Lines returns one line of text for each problem, and one for the number of further problems.
func (e *HealthError) Lines() []string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		line := p.Text
		if !p.GVR.Empty() {
			line = fmt.Sprintf("%s: %s", discovery.RefOf(p.GVR), p.Text)
		}
		lines = append(lines, line)
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return lines
}
