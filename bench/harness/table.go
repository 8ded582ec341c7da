package harness

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

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
	word := "reached"
	switch {
	case value == nil:
		word = "not measured"
	case value.Median > t.AtMost:
		word = "MISSED"
	}
	return fmt.Sprintf("%s: %s, %s at most "+format+"%s: %s", word, contestant, t.Metric, t.AtMost, of, spread(format, value))
}
