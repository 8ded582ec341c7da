package harness_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/process"
)

func TestMain(m *testing.M) {
	if process.Role() == harness.Role { // jobs run in processes of this program
		if err := harness.RunProcess(context.Background(), []harness.Scenario{fake(nil)}); err != nil { //nolint:forbidigo // a process has no other context
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// fake returns a scenario of two cases. Its servers call stop when they stop.
func fake(stop func() error) harness.Scenario {
	measure := func(_ context.Context, job harness.Job, n float64) (harness.Figures, error) {
		if job.Contestant == 1 && os.Getenv("FAKE") != "7" {
			return nil, errors.New("the environment is missing")
		}
		if job.Round == 3 {
			return nil, errors.New("round 3 fails")
		}
		return harness.Figures{"answer": n * float64(1+job.Round)}, nil
	}
	c := harness.Case{
		Name: "small", Title: "a small case", Rounds: 2, Metrics: []harness.Metric{{Name: "answer", Format: "%.0f"}},
		Contestants: []harness.Contestant{{Name: "old", Measure: harness.On(measure)}, {Name: "new", Measure: harness.On(measure), Env: []string{"FAKE=7"}}},
		Start: func(context.Context, io.Writer) (any, func() error, error) {
			return 10, stop, nil
		},
	}
	other := c
	other.Name = "large"
	return harness.Scenario{Name: "fake", About: "a test", Cases: func(bool) []harness.Case { return []harness.Case{c, other} }}
}

func TestRun_MeasuresEachContestantInEachRound(t *testing.T) {
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // the race detector waits for a second otherwise
	var progress strings.Builder
	stopped := 0
	results, err := harness.Run(t.Context(), fake(func() error { stopped++; return nil }), harness.Options{Progress: &progress, Cases: regexp.MustCompile("small")})
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Cases) != 1 || stopped != 1 {
		t.Fatalf("%d cases, stopped %d times", len(results.Cases), stopped)
	}
	figures := func(n float64) harness.Round {
		f := harness.Figures{"answer": 10 * n}
		return harness.Round{"old": f, "new": f}
	}
	if diff := cmp.Diff([]harness.Round{figures(2), figures(3)}, results.Cases[0].Rounds); diff != "" {
		t.Errorf("rounds (-want +got):\n%s", diff)
	}
	if first, second := strings.Index(progress.String(), "round 1/2, new"), strings.Index(progress.String(), "round 1/2, old"); first < 0 || first > second {
		t.Errorf("the second round does not begin with the second contestant:\n%s", &progress)
	}
}

func TestRun_ErrorsHaveTheirCause(t *testing.T) {
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	broken := errors.New("the server is broken")
	results, err := harness.Run(t.Context(), fake(func() error { return broken }), harness.Options{Rounds: 3, Progress: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "fake, small: round 3, new: ") || !strings.Contains(err.Error(), "round 3 fails") {
		t.Errorf("error: %v, want that of the job", err)
	}
	if !errors.Is(err, broken) {
		t.Errorf("error: %v, want also that of the servers", err)
	}
	if len(results.Cases) != 1 || len(results.Cases[0].Rounds) != 2 {
		t.Errorf("results: %+v, want those before the failure", results)
	}
}

func TestSummarize_MedianMinAndMax(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		want   harness.Summary
	}{
		{[]float64{4}, harness.Summary{Median: 4, Min: 4, Max: 4}},
		{[]float64{3, 1, 2}, harness.Summary{Median: 2, Min: 1, Max: 3}},
		{[]float64{9, 1, 2, 4}, harness.Summary{Median: 3, Min: 1, Max: 9}},
	} {
		before := append([]float64(nil), tc.values...)
		if diff := cmp.Diff(&tc.want, harness.Summarize(tc.values)); diff != "" {
			t.Errorf("%v:\n%s", tc.values, diff)
		}
		if diff := cmp.Diff(before, tc.values); diff != "" {
			t.Errorf("the values were changed:\n%s", diff)
		}
	}
	if harness.Summarize(nil) != nil {
		t.Error("there is a summary of no values")
	}
}

// sample returns results of three rounds: old took 4, 8 and 10 ms, and new 2, 2 and 1.
func sample() *harness.Results {
	round := func(old, new float64) harness.Round {
		return harness.Round{"old": {"time": old, "rate": 1 / old, "nothing": 0, "early": -1}, "new": {"time": new, "rate": 1 / new, "nothing": 3, "early": -2}, "third": {"time": 1}}
	}
	return &harness.Results{Scenario: "sample", About: "a test", Environment: harness.CurrentEnvironment(), Cases: []*harness.CaseResults{{
		Case: harness.Case{
			Name: "one", Title: "the case of the test", Plot: true,
			Contestants: []harness.Contestant{{Name: "old", About: "the reference"}, {Name: "new", About: "the second", Beside: "third", Targets: []harness.Target{
				{Metric: "time", AtMost: 1.5}, {Metric: "rate", AtMost: 5, To: "old"}, {Metric: "time", AtMost: 3, To: "third"}, {Metric: "unknown"},
			}}, {Name: "third", About: "the last"}},
			Metrics: []harness.Metric{
				{Name: "time", Format: "%.1f ms"},
				{Name: "rate", Format: "%.2f", More: true},
				{Name: "nothing", Format: "%.0f"},
				{Name: "early", Format: "%.0f"},
				{Name: "unknown", Format: "%.0f"},
			},
		},
		Rounds: []harness.Round{round(4, 2), round(8, 2), round(10, 1)},
	}}}
}

func TestCaseResults_RatiosAreOfEachRoundWithoutTheWarmup(t *testing.T) {
	c := sample().Cases[0]
	if diff := cmp.Diff(&harness.Summary{Median: 8, Min: 4, Max: 10}, c.Values("time", "old")); diff != "" {
		t.Errorf("time: %s", diff)
	}
	if diff := cmp.Diff(&harness.Summary{Median: .25, Min: .1, Max: .5}, c.Ratios("time", "new", "old")); diff != "" {
		t.Errorf("ratios of time: %s", diff)
	}
	for _, name := range []string{"nothing", "early", "unknown"} {
		if got := c.Ratios(name, "new", "old"); got != nil {
			t.Errorf("ratios of %s: %v", name, got)
		}
	}
	if c.Ratios("time", "newer", "old") != nil {
		t.Error("there are ratios of a contestant that was not run")
	}
}

func TestResults_TableHasValuesRatiosAndTargets(t *testing.T) {
	r := sample()
	r.Cases = append(r.Cases, &harness.CaseResults{Case: harness.Case{Title: "without rounds", Contestants: r.Cases[0].Contestants}})
	var out strings.Builder
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sample: a test", "the case of the test", "new: the second", "medians of 3 rounds",
		"8.0 ms (4.0..10.0)", "2.0 ms ×0.25 (0.1..0.5), ×2 (1..2) of third",
		"MISSED: new, time at most 1.5 ms: 2.0 ms (1.0..2.0)\n", "reached: new, rate at most ×5 of old: ×4 (2..10)\n",
		"reached: new, time at most ×3 of third: ×2 (1..2)\n", "not measured: new, unknown at most 0: -\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "without rounds") {
		t.Errorf("unexpected text in the table:\n%s", &out)
	}
}

func TestResults_AreSavedWhole(t *testing.T) {
	dir := t.TempDir()
	want := sample()
	if err := want.Save(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "sample.json"))
	got := &harness.Results{}
	if err := errors.Join(err, json.Unmarshal(text, got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if e := got.Environment; !strings.HasPrefix(e.Command, "go run ./bench") || e.Go == "" || e.Cores == 0 {
		t.Errorf("environment: %+v", e)
	}
}

func TestResults_DrawAChart(t *testing.T) {
	dir := t.TempDir()
	if err := sample().Save(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "sample-one.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{">new<", "ratios to old", ">time<", "new 0.25"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), ">rate<") {
		t.Error("the chart has a metric whose greater values are better")
	}
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("invalid XML: %v", err)
		}
	}
}

func TestFind_ListsTheNames(t *testing.T) {
	all := []time.Duration{time.Second, time.Minute}
	if got, err := harness.Find(all, "1m0s", time.Duration.String); err != nil || got != time.Minute {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := harness.Find(all, "1h", time.Duration.String); err == nil || !strings.Contains(err.Error(), `["1s" "1m0s"]`) {
		t.Errorf("error: %v", err)
	}
}
