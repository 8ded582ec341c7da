package report

import (
	"github.com/gvrkit/gvrkit/bench/leases/trial"
	bench "github.com/gvrkit/gvrkit/bench/report"
)

// Results are all runs of one benchmark.
type Results struct {
	Environment bench.Environment `json:"environment"`
	// Size is how much was measured in rounds that count.
	Size trial.Size `json:"size"`
	// Warmup is the round that does not count.
	Warmup Round   `json:"warmup"`
	Rounds []Round `json:"rounds"`
}

// Round is what was measured of each system, by its name.
type Round map[string]trial.Figures

// Write writes the results to a file.
func (r *Results) Write(path string) error { return bench.WriteFile(path, r) }

// Read reads the results from a file.
func Read(path string) (*Results, error) { return bench.ReadFile[Results](path) }
