package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the ratios of all cases, a row for each system, and the figures
// of the reference.
func (r *Results) WriteTable(w io.Writer) error {
	for _, c := range r.Cases {
		fmt.Fprintf(w, "\n%s of %.0f bytes (%.0f compressed), %d events\n", c.Title(), c.Corpus.BytesPerObject, c.Corpus.CompressedBytesPerObject, c.Events)
		fmt.Fprintf(w, "ratios to %s in the same round: median of %d (min-max)\n\n", r.Reference, len(c.Rounds))
		if err := c.writeTable(w, r.Reference); err != nil {
			return err
		}
	}
	return nil
}

func (c *Case) writeTable(w io.Writer, reference string) error {
	metrics := Metrics()
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(first string, cell func(Metric) (string, bool)) {
		cells := []string{first}
		for _, m := range metrics {
			text, ok := cell(m)
			if !ok {
				text = "-"
			}
			cells = append(cells, text)
		}
		fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	row("", func(m Metric) (string, bool) { return m.Name, true })
	row(reference+" is", func(m Metric) (string, bool) {
		s, ok := c.Values(m, reference)
		return m.Text(s.Median), ok
	})
	for _, system := range c.Systems {
		if system == reference {
			continue
		}
		row(system, func(m Metric) (string, bool) {
			s, ok := c.Ratios(m, system, reference)
			return s.String(), ok
		})
	}
	return out.Flush()
}
