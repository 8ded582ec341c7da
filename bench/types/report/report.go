// Package report keeps what was measured of programs that start, compares gvrkit with
// client-go and with its targets, and writes it down: as a table, and as JSON with every
// single run.
package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	bench "github.com/gvrkit/gvrkit/bench/report"
	"github.com/gvrkit/gvrkit/bench/types/server"
	"github.com/gvrkit/gvrkit/bench/types/trial"
)

// Results are all runs of one benchmark.
type Results struct {
	Environment bench.Environment `json:"environment"`
	Cases       []*Case           `json:"cases"`
}

// Case is programs that watch so many types of one server.
type Case struct {
	Server string      `json:"server"`
	Size   server.Size `json:"size"`
	Types  int         `json:"types"`
	// Warmup is the round that does not count.
	Warmup Round   `json:"warmup"`
	Rounds []Round `json:"rounds"`
}

// Round is one run of each system, by its name.
type Round map[string]trial.Figures

// Write writes the results to a file.
func (r *Results) Write(path string) error { return bench.WriteFile(path, r) }

// Read reads the results from a file.
func Read(path string) (*Results, error) { return bench.ReadFile[Results](path) }

// Metric is one thing that was measured. Of all of them less is better.
type Metric struct {
	Name string
	// Format writes a value, and Unit follows it.
	Format, Unit string
	// Of returns its value in one run.
	Of func(trial.Figures) float64
	// Limit is what gvrkit with discovery should not exceed, and RatioLimit the same of the
	// ratio to client-go; 0 is none.
	Limit, RatioLimit float64
}

// Metrics returns what is compared where a program watches so many types.
func Metrics(types int) []Metric {
	returned, cpu := Metric{Limit: 20}, Metric{RatioLimit: 2}
	if types > 1 {
		returned, cpu = Metric{RatioLimit: .8}, Metric{RatioLimit: 1}
	}
	millis := func(name string, of func(trial.Figures) time.Duration, target Metric) Metric {
		return Metric{name, "%.1f", "ms", func(f trial.Figures) float64 { return float64(of(f)) / float64(time.Millisecond) }, target.Limit, target.RatioLimit}
	}
	count := func(name string, of func(trial.Figures) int64, limit float64) Metric {
		return Metric{name, "%.0f", "", func(f trial.Figures) float64 { return float64(of(f)) }, limit, 0}
	}
	return []Metric{
		millis("until its wait returns", func(f trial.Figures) time.Duration { return f.Returned }, returned),
		millis("until the last has synced", func(f trial.Figures) time.Duration { return f.Synced }, Metric{}),
		millis("CPU until its wait returns", func(f trial.Figures) time.Duration { return f.ReturnedCPU }, Metric{}),
		millis("CPU until at rest", func(f trial.Figures) time.Duration { return f.RestCPU }, cpu),
		count("requests before the first list", func(f trial.Figures) int64 { return f.Before }, 4),
		{"discovery read", "%.0f", "KB", func(f trial.Figures) float64 { return float64(f.Bytes) / 1e3 }, 400, 0},
		count("document requests", func(f trial.Figures) int64 { return f.Documents }, 0),
		count("CRD and APIService requests", func(f trial.Figures) int64 { return f.Definitions }, 0),
		count("requests for objects", func(f trial.Figures) int64 { return f.Objects }, 0),
	}
}

// Values sums up what m was of a system.
func (c *Case) Values(m Metric, system string) bench.Summary {
	return c.summarize(func(r Round) float64 { return m.Of(r[system]) })
}

// Ratios sums up the ratios of a system to client-go in the same round; 0 if client-go had
// nothing.
func (c *Case) Ratios(m Metric, system string) bench.Summary {
	return c.summarize(func(r Round) float64 {
		if by := m.Of(r[trial.ClientGo]); by > 0 {
			return m.Of(r[system]) / by
		}
		return 0
	})
}

func (c *Case) summarize(of func(Round) float64) bench.Summary {
	var values []float64
	for _, round := range c.Rounds {
		values = append(values, of(round))
	}
	s, _ := bench.Summarize(values)
	return s
}

// WriteTable writes the figures of all systems, their ratios to client-go and the targets.
func (r *Results) WriteTable(w io.Writer) error {
	for _, s := range trial.All() {
		fmt.Fprintf(w, "%s: %s\n", s.Name, s.About)
	}
	for _, c := range r.Cases {
		if len(c.Rounds) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s, %d CRDs with schemas of %d bytes: %d of their types are watched, with %d objects each\n", c.Server, c.Size.CRDs, c.Size.SchemaBytes, c.Types, c.Size.Objects)
		fmt.Fprintf(w, "median of %d (min..max), and the ratio to client-go in the same round\n\n", len(c.Rounds))
		if err := c.writeTable(w); err != nil {
			return err
		}
	}
	return nil
}

func (c *Case) writeTable(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header := []string{""}
	for _, s := range trial.All() {
		header = append(header, s.Name)
	}
	fmt.Fprintln(out, strings.Join(append(header, "target"), "\t"))
	for _, m := range Metrics(c.Types) {
		row := []string{m.Name}
		for _, s := range trial.All() {
			cell := text(m.Format, m.Unit, c.Values(m, s.Name))
			if ratio := c.Ratios(m, s.Name); s.Name != trial.ClientGo && ratio.Max > 0 {
				cell += "; " + text("%.2f", "", ratio)
			}
			row = append(row, cell)
		}
		fmt.Fprintln(out, strings.Join(append(row, c.verdict(m)), "\t"))
	}
	return out.Flush()
}

// text writes a summary, and between which values it lies unless they are all the same.
func text(format, unit string, s bench.Summary) string {
	all, low, high := fmt.Sprintf(format, s.Median), fmt.Sprintf(format, s.Min), fmt.Sprintf(format, s.Max)
	if low != high {
		all += " (" + low + ".." + high + ")"
	}
	return strings.TrimSpace(all + " " + unit)
}

// verdict says what the target is, and which systems miss it.
func (c *Case) verdict(m Metric) string {
	target := fmt.Sprintf("%.0f %s", m.Limit, m.Unit)
	if m.RatioLimit > 0 {
		target = fmt.Sprintf("ratio %.1f", m.RatioLimit)
	}
	if m.Limit == 0 && m.RatioLimit == 0 {
		return "-"
	}
	target = strings.TrimSpace(target)
	for _, system := range []string{trial.Acquire, trial.ForResource} {
		limit, value := m.Limit, c.Values(m, system)
		if m.RatioLimit > 0 {
			limit, value = m.RatioLimit, c.Ratios(m, system)
		}
		if value.Median > limit {
			target += ", MISSED by " + system
		}
	}
	return target
}
