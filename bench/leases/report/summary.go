package report

import (
	"fmt"

	bench "github.com/gvrkit/gvrkit/bench/report"
)

// Values sums up what m was of a system. It returns false if that is not known.
func (r *Results) Values(m Metric, system string) (bench.Summary, bool) {
	return r.summarize(func(round Round) (float64, bool) {
		f, ran := round[system]
		if !ran {
			return 0, false
		}
		return m.Of(f)
	})
}

// Ratios sums up the ratios of a system to another in the same round. It returns false
// if there are none: what one of them has may be nothing, or less.
func (r *Results) Ratios(m Metric, system, other string) (bench.Summary, bool) {
	return r.summarize(func(round Round) (float64, bool) {
		v, ok := m.Of(round[system])
		by, known := m.Of(round[other])
		if !ok || !known || v < 0 || by <= 0 {
			return 0, false
		}
		return v / by, true
	})
}

func (r *Results) summarize(of func(Round) (float64, bool)) (bench.Summary, bool) {
	var values []float64
	for _, round := range r.Rounds {
		if v, ok := of(round); ok {
			values = append(values, v)
		}
	}
	return bench.Summarize(values)
}

// text writes a summary, and between which values it lies unless they are all the same.
func text(format, unit string, s bench.Summary) string {
	all := fmt.Sprintf(format, s.Median)
	low, high := fmt.Sprintf(format, s.Min), fmt.Sprintf(format, s.Max)
	if low != high {
		all += " (" + low + ".." + high + ")"
	}
	if unit != "" {
		all += " " + unit
	}
	return all
}
