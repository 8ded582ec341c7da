package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/gvrkit/gvrkit/bench/leases/informers"
	"github.com/gvrkit/gvrkit/bench/leases/trial"
)

// Metric is one thing that was measured. Of all of them less is better.
type Metric struct {
	Name string
	// Format writes a value, and Unit follows it.
	Format, Unit string
	// Of returns its value in one run, if there is one.
	Of func(trial.Figures) (float64, bool)
	// Target is what gvrkit should not exceed, if Aimed.
	Target float64
	Aimed  bool
}

// at returns m with a target.
func (m Metric) at(target float64) Metric {
	m.Target, m.Aimed = target, true
	return m
}

// Section is what is told of one thing.
type Section struct {
	Title string
	// Other is the system that gvrkit is compared with, if there is one.
	Other   string
	Metrics []Metric
}

// The targets.
const (
	pairTarget    = 10  // µs
	armedTarget   = 12  // KB
	handlerTarget = 25  // KB
	parkedTarget  = 70  // KB
	newsTarget    = 100 // ms after the evidence
)

// Sections returns what is compared.
func (r *Results) Sections() []Section {
	s := r.Size
	return []Section{
		{Title: "Acquire and Release of what another lease keeps", Metrics: costs()},
		{
			Title: fmt.Sprintf("%d informers on types that are not there", s.Armed), Other: informers.ClientGo, Metrics: []Metric{
				armed("requests while they start", "%.0f", "", func(a *trial.Armed) float64 { return float64(a.Starting) }),
				armed("requests then", "%.1f", "/s", func(a *trial.Armed) float64 { return float64(a.Requests) / a.Time.Seconds() }).at(0),
				armed("memory of each", "%.1f", "KB", func(a *trial.Armed) float64 { return kilobytes(a.Bare, a.Informers) }).at(armedTarget),
				armed("a handler of each, besides", "%.1f", "KB", func(a *trial.Armed) float64 { return kilobytes(a.Handlers, a.Informers) }).at(handlerTarget),
				armed("goroutines of each, with it", "%.1f", "", func(a *trial.Armed) float64 {
					return float64(a.Bare.Goroutines+a.Handlers.Goroutines) / float64(a.Informers)
				}),
			},
		},
		{
			Title: fmt.Sprintf("%d informers with a handler, whose types go with %d objects each", s.Parked, s.Objects), Other: informers.Alone, Metrics: []Metric{
				parked("memory of each while its type is there", "KB", func(p *trial.Parked) float64 { return kilobytes(p.Synced, p.Informers) }),
				parked("memory of each afterwards", "KB", func(p *trial.Parked) float64 { return kilobytes(p.Gone, p.Informers) }).at(parkedTarget),
				parked("goroutines of each afterwards", "", func(p *trial.Parked) float64 { return float64(p.Gone.Goroutines) / float64(p.Informers) }),
			},
		},
		{
			Title: fmt.Sprintf("a type goes with %d objects, and comes back; %d times a run", s.Objects, s.Cycles), Other: informers.ByHand, Metrics: slices.Concat(
				middleAndWorst("CRD deleted to the last object's deletion", func(c trial.Cycle) time.Duration { return c.Deleted }, newsTarget),
				middleAndWorst("CRD deleted until the informer knows", func(c trial.Cycle) time.Duration { return c.Gone }, 0),
				middleAndWorst("established until the server lists", func(c trial.Cycle) time.Duration { return c.Listable }, 0),
				middleAndWorst("established until synced", func(c trial.Cycle) time.Duration { return c.Synced }, 0),
				middleAndWorst("the server lists until synced", func(c trial.Cycle) time.Duration { return c.Synced - c.Listable }, 0),
				middleAndWorst("first object created to its addition", func(c trial.Cycle) time.Duration { return c.Added }, newsTarget),
			),
		},
	}
}

// costs are those of leases, in as many goroutines as were measured.
func costs() []Metric {
	var all []Metric
	for i, goroutines := range trial.Goroutines() {
		of := func(value func(trial.Cost) float64) func(trial.Figures) (float64, bool) {
			return func(f trial.Figures) (float64, bool) {
				if i >= len(f.Cost) {
					return 0, false
				}
				return value(f.Cost[i]), true
			}
		}
		name := fmt.Sprintf("%d at a time", goroutines)
		all = append(all,
			Metric{Name: name, Format: "%.2f", Unit: "µs", Of: of(func(c trial.Cost) float64 { return c.Nanos / 1e3 })}.at(pairTarget),
			Metric{Name: name + ", allocations", Format: "%.1f", Of: of(func(c trial.Cost) float64 { return c.Allocs })},
			Metric{Name: name + ", requests in all", Format: "%.0f", Of: of(func(c trial.Cost) float64 { return float64(c.Requests) })}.at(0),
		)
	}
	return all
}

func armed(name, format, unit string, of func(*trial.Armed) float64) Metric {
	return Metric{Name: name, Format: format, Unit: unit, Of: func(f trial.Figures) (float64, bool) {
		if f.Armed == nil {
			return 0, false
		}
		return of(f.Armed), true
	}}
}

func parked(name, unit string, of func(*trial.Parked) float64) Metric {
	return Metric{Name: name, Format: "%.1f", Unit: unit, Of: func(f trial.Figures) (float64, bool) {
		if f.Parked == nil {
			return 0, false
		}
		return of(f.Parked), true
	}}
}

// kilobytes is what each of n has of m.
func kilobytes(m trial.Memory, n int) float64 { return float64(m.Heap+m.Stacks) / float64(n) / 1e3 }

// middleAndWorst are the median of a run's cycles, and the longest. A target of 0 is none.
func middleAndWorst(name string, of func(trial.Cycle) time.Duration, target float64) []Metric {
	over := func(choose func(sorted []float64) float64) func(trial.Figures) (float64, bool) {
		return func(f trial.Figures) (float64, bool) {
			var times []float64
			for _, c := range f.Back {
				times = append(times, float64(of(c))/float64(time.Millisecond))
			}
			if times == nil {
				return 0, false
			}
			slices.Sort(times)
			return choose(times), true
		}
	}
	both := []Metric{
		{Name: name, Format: "%.1f", Unit: "ms", Of: over(func(sorted []float64) float64 { return sorted[len(sorted)/2] })},
		{Name: "  the worst of a run", Format: "%.1f", Unit: "ms", Of: over(func(sorted []float64) float64 { return sorted[len(sorted)-1] })},
	}
	if target > 0 {
		both[0], both[1] = both[0].at(target), both[1].at(target)
	}
	return both
}
