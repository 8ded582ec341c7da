package harness

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes a table for each case: a row for each metric and a column for each
// contestant, with medians, ratios to the reference, and targets.
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
	header := []string{""}
	for _, contestant := range c.Contestants {
		fmt.Fprintf(w, "  %s: %s\n", contestant.Name, contestant.About)
		header = append(header, contestant.Name)
	}
	header = append(header, "target")
	fmt.Fprintf(w, "medians of %d rounds (min..max)", len(c.Rounds))
	if len(c.Contestants) > 1 {
		fmt.Fprintf(w, "; × is the ratio to %s in the same round", c.Reference())
	}
	fmt.Fprint(w, "\n\n")
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, strings.Join(header, "\t"))
	for _, m := range c.Metrics {
		fmt.Fprintln(out, strings.Join(c.row(m), "\t"))
	}
	return out.Flush()
}

// row returns the cells of a metric.
func (c *CaseResults) row(m Metric) []string {
	cells := []string{"  " + m.Name}
	for _, contestant := range c.Contestants {
		value, ratio := c.Values(m.Name, contestant.Name), c.Ratios(m.Name, contestant.Name)
		cell := spread(m.Format, value)
		if contestant.Name != c.Reference() && ratio != nil {
			cell = fmt.Sprintf(m.Format, value.Median) + " " + spread("×%.3g", ratio)
		}
		cells = append(cells, cell)
	}
	return append(cells, c.verdict(m))
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

// verdict returns the target of a metric and the contestants that miss it.
func (c *CaseResults) verdict(m Metric) string {
	target, limit := fmt.Sprintf("×%.2g", m.RatioAtMost), m.RatioAtMost
	switch {
	case m.AtMost != nil:
		target, limit = fmt.Sprintf(m.Format, *m.AtMost), *m.AtMost
	case m.RatioAtMost == 0:
		return ""
	}
	for _, contestant := range c.Contestants {
		value := c.Values(m.Name, contestant.Name)
		if m.AtMost == nil {
			value = c.Ratios(m.Name, contestant.Name)
		}
		if contestant.Target && value != nil && value.Median > limit {
			target += ", MISSED by " + contestant.Name
		}
	}
	return target
}
