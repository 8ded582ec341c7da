package harness

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Results are all runs of one scenario.
type Results struct {
	Environment Environment    `json:"environment"`
	Scenario    string         `json:"scenario"`
	About       string         `json:"about"`
	Cases       []*CaseResults `json:"cases"`
}

// Environment describes the machine and the software of a measurement.
type Environment struct {
	Time    time.Time `json:"time"`
	Command string    `json:"command"`
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	GOOS    string    `json:"goos"`
	GOARCH  string    `json:"goarch"`
	Go      string    `json:"go"`
	// Modules are the versions of the modules that are compared.
	Modules map[string]string `json:"modules"`
}

// CurrentEnvironment returns the environment of this process. Without /proc/cpuinfo, CPU is empty.
func CurrentEnvironment() Environment {
	e := Environment{
		Time: time.Now().UTC().Truncate(time.Second), Command: strings.Join(append([]string{"go run ./bench"}, os.Args[1:]...), " "),
		Cores: runtime.NumCPU(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH, Go: runtime.Version(), Modules: map[string]string{},
	}
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	if model := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(cpus); model != nil {
		e.CPU = string(model[1])
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if slices.Contains([]string{"k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}, dep.Path) {
				e.Modules[dep.Path] = dep.Version
			}
		}
	}
	return e
}

// CaseResults are all runs of one case.
type CaseResults struct {
	Case

	// Warmup is the first round, which does not count.
	Warmup Round   `json:"warmup"`
	Rounds []Round `json:"rounds"`
}

// Round has the figures of one run of each contestant, by its name.
type Round map[string]Figures

// Save writes the results to a directory, with the figures of each run. It does nothing if dir is
// empty.
func (r *Results) Save(dir string) error {
	if dir == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	return errors.Join(err, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, r.Scenario+".json"), append(text, '\n'), 0o644))
}

// Summary summarizes the values of several rounds. It is nil if there are none.
type Summary struct{ Median, Min, Max float64 }

// Summarize summarizes values.
func Summarize(values []float64) *Summary {
	if len(values) == 0 {
		return nil
	}
	return &Summary{Median: Median(values), Min: slices.Min(values), Max: slices.Max(values)}
}

// Median returns the median of values: for an even number of values, the mean of the middle two.
// There must be at least one value.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Reference returns the name of the contestant that ratios are relative to.
func (c *Case) Reference() string { return c.Contestants[0].Name }

// Values summarizes the values of a metric for a contestant.
func (c *CaseResults) Values(metric, contestant string) *Summary {
	var values []float64
	for _, round := range c.Rounds {
		if v, ok := round[contestant][metric]; ok {
			values = append(values, v)
		}
	}
	return Summarize(values)
}

// Ratios summarizes the ratios of a contestant to another one in the same round. There is no ratio
// if a value is negative, or the other one is 0.
func (c *CaseResults) Ratios(metric, contestant, to string) *Summary {
	var ratios []float64
	for _, round := range c.Rounds {
		v, ok := round[contestant][metric]
		if by := round[to][metric]; ok && v >= 0 && by > 0 {
			ratios = append(ratios, v/by)
		}
	}
	return Summarize(ratios)
}
