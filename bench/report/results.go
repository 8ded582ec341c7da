package report

import (
	"fmt"

	"github.com/gvrkit/gvrkit/bench/measure"
)

// Results are all runs of one benchmark.
type Results struct {
	Environment Environment `json:"environment"`
	// Reference is the system that the others are compared with.
	Reference string  `json:"reference"`
	Cases     []*Case `json:"cases"`
}

// Case is one server with one corpus, against which all systems were run in turn.
type Case struct {
	Server  string `json:"server"`
	Kind    string `json:"kind"`
	Objects int    `json:"objects"`
	Events  int    `json:"events"`
	// Paced says that the server made its changes as fast as the system read them.
	Paced  bool   `json:"paced"`
	Corpus Corpus `json:"corpus"`
	// Systems is in which order systems are shown.
	Systems []string `json:"systems"`
	// Warmup is the round that does not count.
	Warmup Round   `json:"warmup"`
	Rounds []Round `json:"rounds"`
}

// Corpus says how large the objects are, and how much they differ: the size of all
// together, compressed as one by zstd, divided by their number.
type Corpus struct {
	BytesPerObject           float64 `json:"bytesPerObject"`
	CompressedBytesPerObject float64 `json:"compressedBytesPerObject"`
}

// Round is one run of each system, by its name.
type Round map[string]measure.Figures

// Title says what the case is.
func (c *Case) Title() string {
	return fmt.Sprintf("%s, %s, %d objects", c.Server, c.Kind, c.Objects)
}

// Write writes the results to a file.
func (r *Results) Write(path string) error { return WriteFile(path, r) }

// Read reads the results from a file.
func Read(path string) (*Results, error) { return ReadFile[Results](path) }
