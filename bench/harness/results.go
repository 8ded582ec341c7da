package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Results are all runs of one scenario.
type Results struct {
	Environment Environment    `json:"environment"`
	Scenario    string         `json:"scenario"`
	About       string         `json:"about"`
	Cases       []*CaseResults `json:"cases"`
}

// Environment describes the machine of a measurement.
type Environment struct {
	Time    time.Time `json:"time"`
	Command string    `json:"command"`
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	GOOS    string    `json:"goos"`
	GOARCH  string    `json:"goarch"`
	Go      string    `json:"go"`
}

// CurrentEnvironment returns the environment of this process. Without /proc/cpuinfo, CPU is empty.
func CurrentEnvironment() Environment {
	e := Environment{
		Time: time.Now().UTC().Truncate(time.Second), Command: strings.Join(append([]string{"go run ./bench"}, os.Args[1:]...), " "),
		Cores: runtime.NumCPU(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, Go: runtime.Version(),
	}
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	if model := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(cpus); model != nil {
		e.CPU = string(model[1])
	}
	return e
}

// CaseResults are all runs of one case.
type CaseResults struct {
	Case

	Rounds []Round `json:"rounds"` // without the first one
}

// Round has the figures of one run of each contestant, by its name.
type Round map[string]Figures

// Save writes the results to a directory, with the figures of each run, and the charts of cases
// with Plot. It does nothing if dir is empty.
func (r *Results) Save(dir string) error {
	if dir == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err := errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, r.Scenario+".json"), append(text, '\n'), 0o644)); err != nil {
		return err
	}
	for _, c := range r.Cases {
		if !c.Plot || len(c.Rounds) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, r.Scenario+"-"+c.Name+".svg"), c.draw(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Summary summarizes the values of several rounds. It is nil if there are none.
type Summary struct{ Median, Min, Max float64 }

// Summarize summarizes values.
func Summarize(values []float64) *Summary {
	if len(values) == 0 {
		return nil
	}
	return &Summary{Median: Median(values), Min: slices.Min(values), Max: slices.Max(values)}
}

// Median returns the median of values: for an even number of values, the mean of the middle two.
// There must be at least one value.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Reference returns the name of the contestant that ratios are relative to.
func (c *Case) Reference() string { return c.Contestants[0].Name }

// Values summarizes the values of a metric for a contestant.
func (c *CaseResults) Values(metric, contestant string) *Summary {
	var values []float64
	for _, round := range c.Rounds {
		if v, ok := round[contestant][metric]; ok {
			values = append(values, v)
		}
	}
	return Summarize(values)
}

// Ratios summarizes the ratios of a contestant to another one in the same round. There is no ratio
// if a value is negative, or the other one is 0.
func (c *CaseResults) Ratios(metric, contestant, to string) *Summary {
	var ratios []float64
	for _, round := range c.Rounds {
		v, ok := round[contestant][metric]
		if by := round[to][metric]; ok && v >= 0 && by > 0 {
			ratios = append(ratios, v/by)
		}
	}
	return Summarize(ratios)
}

// WriteTable writes a table for each case: a row for each metric and a column for each
// contestant, with medians and ratios to the reference. A line for each target follows.
func (r *Results) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "\n%s: %s\n", r.Scenario, r.About)
	for _, c := range r.Cases {
		if len(c.Rounds) == 0 {
			continue
		}
		if err := c.writeTable(w); err != nil {
			return err
		}
	}
	return nil
}

func (c *CaseResults) writeTable(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n", c.Title)
	header, formats := []string{""}, map[string]string{}
	for _, contestant := range c.Contestants {
		fmt.Fprintf(w, "  %s: %s\n", contestant.Name, contestant.About)
		header = append(header, contestant.Name)
	}
	fmt.Fprintf(w, "medians of %d rounds (min..max)", len(c.Rounds))
	if len(c.Contestants) > 1 {
		fmt.Fprintf(w, "; × is the ratio to %s in the same round", c.Reference())
	}
	fmt.Fprint(w, "\n\n")
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, strings.Join(header, "\t"))
	for _, m := range c.Metrics {
		formats[m.Name] = m.Format
		fmt.Fprintln(out, strings.Join(c.row(m), "\t"))
	}
	err := out.Flush()
	for _, contestant := range c.Contestants {
		for _, t := range contestant.Targets {
			fmt.Fprintln(w, c.verdict(contestant.Name, t, formats[t.Metric]))
		}
	}
	return err
}

// row returns the cells of a metric.
func (c *CaseResults) row(m Metric) []string {
	cells := []string{"  " + m.Name}
	for _, contestant := range c.Contestants {
		value, ratio := c.Values(m.Name, contestant.Name), c.Ratios(m.Name, contestant.Name, c.Reference())
		cell := spread(m.Format, value)
		if contestant.Name != c.Reference() && ratio != nil {
			cell = fmt.Sprintf(m.Format, value.Median) + " " + spread("×%.3g", ratio)
		}
		if beside := c.Ratios(m.Name, contestant.Name, contestant.Beside); beside != nil {
			cell += ", " + spread("×%.3g", beside) + " of " + contestant.Beside
		}
		cells = append(cells, cell)
	}
	return cells
}

// spread formats a summary, with its minimum and maximum if they differ.
func spread(format string, s *Summary) string {
	if s == nil {
		return "-"
	}
	text := fmt.Sprintf(format, s.Median)
	number, _, _ := strings.Cut(strings.TrimPrefix(format, "×"), " ")
	if low, high := fmt.Sprintf(number, s.Min), fmt.Sprintf(number, s.Max); low != high {
		text += " (" + low + ".." + high + ")"
	}
	return text
}

// verdict says whether a contestant reaches a target.
func (c *CaseResults) verdict(contestant string, t Target, format string) string {
	value, of := c.Values(t.Metric, contestant), ""
	if t.To != "" {
		value, format, of = c.Ratios(t.Metric, contestant, t.To), "×%.3g", " of "+t.To
	}
	word, side, limit := "reached", "at most", t.AtMost
	if t.AtLeast > 0 {
		side, limit = "at least", t.AtLeast
	}
	switch {
	case value == nil:
		word = "not measured"
	case t.AtLeast > 0 && value.Median < limit, t.AtLeast == 0 && value.Median > limit:
		word = "MISSED"
	}
	return fmt.Sprintf("%s: %s, %s %s "+format+"%s: %s", word, contestant, t.Metric, side, limit, of, spread(format, value))
}
