package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gvrkit/gvrkit/bench/leases/informers"
)

// WriteTable writes the figures of all systems, the ratios of gvrkit to the other one of
// each section, and its targets.
func (r *Results) WriteTable(w io.Writer) error {
	fmt.Fprintln(w)
	for _, system := range informers.All() {
		fmt.Fprintf(w, "%s: %s\n", system.Name, system.About)
	}
	fmt.Fprintf(w, "requests are counted for %v, after %v; memory is live heap and stacks; no limit on the rate of requests\n", r.Size.Count, r.Size.Settle)
	fmt.Fprintf(w, "median of %d rounds (min..max); ratios are of the same round; times less than 0 are before the evidence\n", len(r.Rounds))
	for _, section := range r.Sections() {
		if err := r.writeSection(w, section); err != nil {
			return err
		}
	}
	return nil
}

// writeSection writes what there is of a section.
func (r *Results) writeSection(w io.Writer, section Section) error {
	var rows [][]string
	for _, m := range section.Metrics {
		if row, ok := r.row(m, section.Other); ok {
			rows = append(rows, row)
		}
	}
	if rows == nil {
		return nil
	}
	fmt.Fprintf(w, "\n%s\n\n", section.Title)
	header := []string{"", informers.GVRKit, "target"}
	if section.Other != "" {
		header = []string{"", section.Other, informers.GVRKit, "ratio", "target"}
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	return out.Flush()
}

// row returns the cells of a metric, if it has been measured of gvrkit.
func (r *Results) row(m Metric, other string) ([]string, bool) {
	ours, ok := r.Values(m, informers.GVRKit)
	if !ok {
		return nil, false
	}
	row := []string{m.Name}
	ratio := "-"
	if other != "" {
		theirs := "-"
		if s, known := r.Values(m, other); known {
			theirs = text(m.Format, m.Unit, s)
		}
		if s, known := r.Ratios(m, informers.GVRKit, other); known {
			ratio = text("%.3g", "", s)
			if s.Median > 1 {
				ratio += " MORE"
			}
		}
		row = append(row, theirs)
	}
	row = append(row, text(m.Format, m.Unit, ours))
	if other != "" {
		row = append(row, ratio)
	}
	return append(row, m.verdict(ours.Median)), true
}

// verdict says what the target is, and whether it has been missed.
func (m Metric) verdict(median float64) string {
	if !m.Aimed {
		return "-"
	}
	target := strings.TrimSpace(fmt.Sprintf("%.0f %s", m.Target, m.Unit))
	if median > m.Target {
		target += ", MISSED"
	}
	return target
}
