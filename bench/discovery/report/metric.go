package report

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
	"github.com/gvrkit/gvrkit/bench/discovery/trial"
)

// Metric is one thing that was measured. Of all of them less is better.
type Metric struct {
	Name string
	// Format writes a value with its unit.
	Format string
	// Ours is the system that is compared with the others; gvrkit, if empty.
	Ours string
	// Of returns its value in one run, if there is one.
	Of func(Run) (float64, bool)
	// Limit is what gvrkit must not exceed, if Limited.
	Limit   float64
	Limited bool
}

// system returns which system is meant by one that is compared.
func (m Metric) system(name string) string {
	if name == mappers.GVRKit {
		return cmp.Or(m.Ours, name)
	}
	return name
}

// Section is what is told of one thing.
type Section struct {
	Title   string
	Metrics []Metric
}

// Sections returns what is compared.
func (r *Results) Sections() []Section {
	asks, many := r.Settings.Asks, fmt.Sprintf("%d CRDs", r.Crowded.CRDs)
	return []Section{
		{
			"cold resolve of one type, no CRDs", []Metric{
				millis("time", plain(func(s trial.Start) float64 { return float64(s.First) })),
				count("requests until answered", plain(func(s trial.Start) float64 { return float64(s.FirstRequests) })),
				count("requests until at rest", plain(func(s trial.Start) float64 { return float64(s.Requests) })),
				asking(millis("time, gvrkit without Run", plain(func(s trial.Start) float64 { return float64(s.First) }))),
				asking(count("requests, gvrkit without Run", plain(func(s trial.Start) float64 { return float64(s.Requests) }))),
			},
		},
		{
			"start with " + many, []Metric{
				millis("one type resolvable", crowded(func(s trial.Start) float64 { return float64(s.First) })),
				count("requests until then", crowded(func(s trial.Start) float64 { return float64(s.FirstRequests) })),
				millis("all types resolved", crowded(func(s trial.Start) float64 { return float64(s.All) })),
				count("requests until then", crowded(func(s trial.Start) float64 { return float64(s.AllRequests) })),
				count("requests until at rest", crowded(func(s trial.Start) float64 { return float64(s.Requests) })),
				{Name: "received until at rest", Format: "%.2f MB", Of: crowded(func(s trial.Start) float64 { return float64(s.Bytes) / 1e6 })},
				millis("CPU until at rest", crowded(func(s trial.Start) float64 { return float64(s.CPU) })),
				{Name: "peak RSS", Format: "%.0f MiB", Of: crowded(func(s trial.Start) float64 { return float64(s.PeakRSS) / (1 << 20) })},
			},
		},
		{
			"retained heap", []Metric{
				{Name: "no CRDs", Format: "%.0f KB", Of: plain(func(s trial.Start) float64 { return float64(s.Heap) / 1e3 })},
				{Name: many, Format: "%.0f KB", Of: crowded(func(s trial.Start) float64 { return float64(s.Heap) / 1e3 })},
				{Name: "per CRD", Format: "%.2f KB", Of: r.perCRD(func(s trial.Start) int64 { return s.Heap })},
				{Name: many + ", asked in every way", Format: "%.0f KB", Of: crowded(func(s trial.Start) float64 { return float64(s.FullHeap) / 1e3 })},
				{Name: "per CRD", Format: "%.2f KB", Of: r.perCRD(func(s trial.Start) int64 { return s.FullHeap })},
			},
		},
		{fmt.Sprintf("%d warm resolves: RESTMapping", asks), warm(func(f trial.Figures) *trial.Warm { return f.Mapping })},
		{fmt.Sprintf("%d warm resolves: ResolveGVK; RESTMapping of the others", asks), warm(func(f trial.Figures) *trial.Warm { return f.Kind })},
		{fmt.Sprintf("%d warm resolves: Resolve of plural.group; ResourceFor of the others", asks), warm(func(f trial.Figures) *trial.Warm { return f.Name })},
		{fmt.Sprintf("%d asks for a type that is not there", asks), unknown(asks, func(f trial.Figures) *trial.Unknown { return f.Unknown })},
		{
			"the same, in such a way that it would be found once it comes",
			unknown(asks, func(f trial.Figures) *trial.Unknown { return cmp.Or(f.Noticed, f.Unknown) }),
		},
		{"a new CRD; awaited by gvrkit, polled by the others", arrival(func(f trial.Figures) *trial.Arrival { return cmp.Or(f.Awaited, f.Polled) })},
		{"a new CRD, polled by all", arrival(func(f trial.Figures) *trial.Arrival { return f.Polled })},
	}
}

// perCRD returns by how much more a heap grows on the crowded cluster, for each CRD.
func (r *Results) perCRD(heap func(trial.Start) int64) func(Run) (float64, bool) {
	return func(run Run) (float64, bool) {
		more := heap(run.Crowded.Start) - heap(run.Plain.Start)
		return float64(more) / 1e3 / float64(r.Crowded.CRDs), r.Crowded.CRDs > 0
	}
}

func plain(of func(trial.Start) float64) func(Run) (float64, bool) {
	return func(run Run) (float64, bool) { return of(run.Plain.Start), true }
}

func crowded(of func(trial.Start) float64) func(Run) (float64, bool) {
	return func(run Run) (float64, bool) { return of(run.Crowded.Start), true }
}

func millis(name string, of func(Run) (float64, bool)) Metric {
	return Metric{Name: name, Format: "%.1f ms", Of: func(run Run) (float64, bool) {
		v, ok := of(run)
		return v / float64(time.Millisecond), ok
	}}
}

func count(name string, of func(Run) (float64, bool)) Metric {
	return Metric{Name: name, Format: "%.0f", Of: of}
}

// asking makes m about a resolver that does not run.
func asking(m Metric) Metric {
	m.Ours = mappers.GVRKitAsking
	return m
}

// optional returns what of makes of a part of a run on the crowded cluster, if there is
// one.
func optional[T any](part func(trial.Figures) *T, of func(*T) float64) func(Run) (float64, bool) {
	return func(run Run) (float64, bool) {
		p := part(run.Crowded)
		if p == nil {
			return 0, false
		}
		return of(p), true
	}
}

func warm(part func(trial.Figures) *trial.Warm) []Metric {
	return []Metric{
		{Name: "time of one", Format: "%.2f µs", Of: optional(part, func(w *trial.Warm) float64 { return w.Nanos / 1e3 }), Limit: 1, Limited: true},
		{Name: "allocations of one", Format: "%.2f", Of: optional(part, func(w *trial.Warm) float64 { return w.Allocs }), Limit: 1, Limited: true},
		{Name: "requests", Format: "%.0f", Of: optional(part, func(w *trial.Warm) float64 { return w.Requests }), Limit: 0, Limited: true},
	}
}

func unknown(asks int, part func(trial.Figures) *trial.Unknown) []Metric {
	return []Metric{
		count("requests", optional(part, func(u *trial.Unknown) float64 { return float64(u.Requests) * float64(asks) / float64(u.Asks) })),
		{Name: "time of one", Format: "%.1f µs", Of: optional(part, func(u *trial.Unknown) float64 { return u.Nanos / 1e3 })},
	}
}

func arrival(part func(trial.Figures) *trial.Arrival) []Metric {
	return []Metric{
		millis("from Established to the first mapping", optional(part, func(a *trial.Arrival) float64 { return float64(a.Latency) })),
		count("requests", optional(part, func(a *trial.Arrival) float64 { return float64(a.Requests) })),
	}
}
