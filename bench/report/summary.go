package report

import (
	"fmt"
	"slices"
)

// Summary sums up the values of several rounds.
type Summary struct{ Median, Min, Max float64 }

// Summarize sums values up; the median of an even number is the mean of the middle
// two. It returns false if there are none.
func Summarize(values []float64) (Summary, bool) {
	if len(values) == 0 {
		return Summary{}, false
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + median) / 2
	}
	return Summary{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}, true
}

func (s Summary) String() string {
	return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Min, s.Max)
}

// Values sums up what a system's metric was in the rounds of c. It returns false if
// that is not known.
func (c *Case) Values(m Metric, system string) (Summary, bool) {
	return c.summarize(m, system, func(Round) (float64, bool) { return 1, true })
}

// Ratios does the same with the ratios to the reference in the same round.
func (c *Case) Ratios(m Metric, system, reference string) (Summary, bool) {
	return c.summarize(m, system, func(r Round) (float64, bool) {
		f, ok := r[reference]
		return m.Of(f), ok
	})
}

func (c *Case) summarize(m Metric, system string, divisor func(Round) (float64, bool)) (Summary, bool) {
	if m.Rate && !c.Paced {
		return Summary{}, false
	}
	var values []float64
	for _, round := range c.Rounds {
		by, known := divisor(round)
		if f, ok := round[system]; ok && known && by != 0 {
			values = append(values, m.Of(f)/by)
		}
	}
	return Summarize(values)
}
