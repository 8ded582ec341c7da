package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Results are all runs of one scenario.
type Results struct {
	Environment Environment    `json:"environment"`
	Scenario    string         `json:"scenario"`
	About       string         `json:"about"`
	Cases       []*CaseResults `json:"cases"`
}

// CaseResults are all runs of one case.
type CaseResults struct {
	Case

	// Warmup is the round that does not count.
	Warmup Round   `json:"warmup"`
	Rounds []Round `json:"rounds"`
}

// Round is one run of each contestant, by its name.
type Round map[string]Figures

// Write writes the results to a file, every single run included.
func (r *Results) Write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read reads results that [Results.Write] wrote.
func Read(path string) (*Results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	results := new(Results)
	if err := json.Unmarshal(text, results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}

// Summary sums up the values of several rounds.
type Summary struct{ Median, Min, Max float64 }

// Summarize sums up values. It returns false if there are none.
func Summarize(values []float64) (Summary, bool) {
	if len(values) == 0 {
		return Summary{}, false
	}
	return Summary{Median: Median(values), Min: slices.Min(values), Max: slices.Max(values)}, true
}

// Median returns the median of values, of which there is at least one: for an even number,
// the mean of the middle two.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Reference returns the name of the contestant that ratios are relative to.
func (c *Case) Reference() string { return c.Contestants[0].Name }

// Values sums up the values of a metric for a contestant. It returns false if it was not
// measured.
func (c *CaseResults) Values(metric, contestant string) (Summary, bool) {
	var values []float64
	for _, round := range c.Rounds {
		if v, ok := round[contestant][metric]; ok {
			values = append(values, v)
		}
	}
	return Summarize(values)
}

// Ratios sums up the ratios of two contestants within the same round. It returns false if
// there are none: there is no ratio to 0, or between values less than 0.
func (c *CaseResults) Ratios(metric string, of Pair) (Summary, bool) {
	var ratios []float64
	for _, round := range c.Rounds {
		v, ok := round[of.Of][metric]
		by, known := round[of.To][metric]
		if ok && known && v >= 0 && by > 0 {
			ratios = append(ratios, v/by)
		}
	}
	return Summarize(ratios)
}
