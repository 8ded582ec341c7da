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
	for _, contestant := range c.Contestants {
		fmt.Fprintf(w, "  %s: %s\n", contestant.Name, contestant.About)
	}
	fmt.Fprintf(w, "medians of %d rounds (min..max)", len(c.Rounds))
	if len(c.Contestants) > 1 {
		fmt.Fprintf(w, "; × is the ratio to %s in the same round", c.Reference())
	}
	fmt.Fprint(w, "\n\n")
	header := []string{""}
	for _, contestant := range c.Contestants {
		header = append(header, contestant.Name)
	}
	for _, pair := range c.Pairs {
		header = append(header, pair.Of+" / "+pair.To)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header = append(header, "target")
	fmt.Fprintln(out, strings.Join(header, "\t"))
	for _, m := range c.Metrics {
		if m.Section != "" {
			fmt.Fprintln(out, m.Section+strings.Repeat("\t", len(header)-1)) // the columns go on
		}
		fmt.Fprintln(out, strings.Join(c.row(m), "\t"))
	}
	return out.Flush()
}

// row returns the cells of a metric.
func (c *CaseResults) row(m Metric) []string {
	cells := []string{"  " + m.Name}
	for _, contestant := range c.Contestants {
		cells = append(cells, c.cell(m, contestant.Name))
	}
	for _, pair := range c.Pairs {
		ratio, ok := c.Ratios(m.Name, pair)
		cells = append(cells, spread("×%.3g", ratio, ok))
	}
	return append(cells, c.verdict(m))
}

// cell returns the value of a contestant and its ratio to the reference.
func (c *CaseResults) cell(m Metric, contestant string) string {
	value, ok := c.Values(m.Name, contestant)
	ratio, known := c.Ratios(m.Name, Pair{contestant, c.Reference()})
	if contestant == c.Reference() || !known {
		return spread(m.Format, value, ok)
	}
	return fmt.Sprintf(m.Format, value.Median) + " " + spread("×%.3g", ratio, known)
}

// spread prints a summary, and its least and greatest value unless all are the same.
func spread(format string, s Summary, ok bool) string {
	if !ok {
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
	var target string
	switch {
	case m.AtMost != nil:
		target = fmt.Sprintf(m.Format, *m.AtMost)
	case m.RatioAtMost > 0:
		target = fmt.Sprintf("×%.2g", m.RatioAtMost)
	default:
		return ""
	}
	for _, contestant := range c.Contestants {
		value, ok := c.Values(m.Name, contestant.Name)
		limit := m.RatioAtMost
		if m.AtMost != nil {
			limit = *m.AtMost
		} else {
			value, ok = c.Ratios(m.Name, Pair{contestant.Name, c.Reference()})
		}
		if contestant.Target && ok && value.Median > limit {
			target += ", MISSED by " + contestant.Name
		}
	}
	return target
}
