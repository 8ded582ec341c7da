package report

import (
	"fmt"
	"strings"

	bench "github.com/gvrkit/gvrkit/bench/report"
)

// Values sums up what m was of a system. It returns false if that is not known.
func (r *Results) Values(m Metric, system string) (bench.Summary, bool) {
	var values []float64
	for _, round := range r.Rounds {
		if run, ran := round[m.system(system)]; ran {
			if v, ok := m.Of(run); ok {
				values = append(values, v)
			}
		}
	}
	return bench.Summarize(values)
}

// Ratios sums up the ratios of a system to another in the same round. It returns false
// if there are none: the other may have had nothing.
func (r *Results) Ratios(m Metric, system, other string) (bench.Summary, bool) {
	var ratios []float64
	for _, round := range r.Rounds {
		ours, ran := round[m.system(system)]
		theirs, beside := round[m.system(other)]
		if !ran || !beside {
			continue
		}
		v, ok := m.Of(ours)
		by, known := m.Of(theirs)
		if ok && known && by != 0 {
			ratios = append(ratios, v/by)
		}
	}
	return bench.Summarize(ratios)
}

// value writes a value, and between which others it lies if it is not always the same.
func value(format string, s bench.Summary) string {
	low, high := fmt.Sprintf(format, s.Min), fmt.Sprintf(format, s.Max)
	if low == high {
		return low
	}
	number, _, _ := strings.Cut(format, " ") // the unit is told once
	return fmt.Sprintf(number+" ("+number+"-"+number+")"+strings.TrimPrefix(format, number), s.Median, s.Min, s.Max)
}
