package report

import (
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/trial"
	bench "github.com/gvrkit/gvrkit/bench/report"
)

// Results are all runs of one benchmark.
type Results struct {
	Environment bench.Environment `json:"environment"`
	Settings    Settings          `json:"settings"`
	// Plain and Crowded are the clusters: one without CRDs, one with many.
	Plain   cluster.Facts `json:"plain"`
	Crowded cluster.Facts `json:"crowded"`
	// Warmup is the round that does not count.
	Warmup Round   `json:"warmup"`
	Rounds []Round `json:"rounds"`
}

// Settings are what was chosen.
type Settings struct {
	// Lag is how long after a CRD is established the documents tell of it.
	Lag time.Duration `json:"lagNanos"`
	// Rest is how long a system must not have asked anything to be at rest.
	Rest time.Duration `json:"restNanos"`
	// Poll is how often who is not told of a type that comes asks for it.
	Poll time.Duration `json:"pollNanos"`
	// Asks is how many warm resolves are one measurement.
	Asks int `json:"asks"`
}

// Round is one run of each system, by its name.
type Round map[string]Run

// Run is what was measured of a system on each cluster.
type Run struct {
	Plain   trial.Figures `json:"plain"`
	Crowded trial.Figures `json:"crowded"`
}

// Write writes the results to a file.
func (r *Results) Write(path string) error { return bench.WriteFile(path, r) }

// Read reads the results from a file.
func Read(path string) (*Results, error) { return bench.ReadFile[Results](path) }
