package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
	bench "github.com/gvrkit/gvrkit/bench/report"
)

// columns are the systems that are shown, ours last.
var columns = []string{mappers.ClientGo, mappers.ControllerRuntime, mappers.GVRKit}

// WriteTable writes the figures of all systems, and the ratios of gvrkit to the others.
func (r *Results) WriteTable(w io.Writer) {
	fmt.Fprintln(w)
	for _, system := range mappers.All() {
		fmt.Fprintf(w, "%s: %s\n", system.Name, system.About)
	}
	fmt.Fprintf(w, "no CRDs: %d types in %d group versions of %d groups, documents of %.2f MB\n",
		r.Plain.Types, r.Plain.GroupVersions, r.Plain.Groups, float64(r.Plain.DocumentBytes)/1e6)
	fmt.Fprintf(w, "%d CRDs: %d types in %d group versions of %d groups, documents of %.2f MB; a CRD has %d bytes (%d compressed)\n",
		r.Crowded.CRDs, r.Crowded.Types, r.Crowded.GroupVersions, r.Crowded.Groups, float64(r.Crowded.DocumentBytes)/1e6, r.Crowded.BytesPerCRD, r.Crowded.CompressedBytesPerCRD)
	fmt.Fprintf(w, "documents lag %v behind CRDs; polls every %v; no limit on the rate of requests\n", r.Settings.Lag, r.Settings.Poll)
	fmt.Fprintf(w, "median of %d rounds (min-max); ratios are of the same round; above 1, gvrkit takes more\n\n", len(r.Rounds))
	header := append([]string{""}, columns...)
	for _, other := range others() {
		header = append(header, "to "+other)
	}
	var g grid
	g.add(header...)
	for _, section := range r.Sections() {
		g.add(section.Title)
		for _, m := range section.Metrics {
			g.add(r.row(m)...)
		}
	}
	g.write(w)
	r.writeLimits(w)
}

// others are the systems that gvrkit is compared with.
func others() []string { return columns[:len(columns)-1] }

// row returns the cells of a metric.
func (r *Results) row(m Metric) []string {
	cells := []string{"  " + m.Name}
	for _, system := range columns {
		cells = append(cells, cell(r.Values(m, system))(m.Format))
	}
	for _, other := range others() {
		s, ok := r.Ratios(m, mappers.GVRKit, other)
		text := cell(s, ok)("%.3g")
		if ok && s.Median > 1 {
			text += " MORE"
		}
		cells = append(cells, text)
	}
	return cells
}

func cell(s bench.Summary, ok bool) func(format string) string {
	return func(format string) string {
		if !ok {
			return "-"
		}
		return value(format, s)
	}
}

// writeLimits tells which of its limits gvrkit keeps.
func (r *Results) writeLimits(w io.Writer) {
	fmt.Fprintln(w)
	for _, section := range r.Sections() {
		var kept, missed []string
		for _, m := range section.Metrics {
			s, ok := r.Values(m, mappers.GVRKit)
			if !m.Limited || !ok {
				continue
			}
			text := m.Name + " " + fmt.Sprintf(m.Format, s.Median)
			if s.Median <= m.Limit {
				kept = append(kept, text)
			} else {
				missed = append(missed, text+", and should be at most "+fmt.Sprintf(m.Format, m.Limit))
			}
		}
		for _, text := range missed {
			fmt.Fprintf(w, "%s: %s\n", section.Title, text)
		}
		if missed == nil && kept != nil {
			fmt.Fprintf(w, "%s: within its limits: %s\n", section.Title, strings.Join(kept, ", "))
		}
	}
}
