package report_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/bench/leases/informers"
	"github.com/gvrkit/gvrkit/bench/leases/report"
	"github.com/gvrkit/gvrkit/bench/leases/trial"
	bench "github.com/gvrkit/gvrkit/bench/report"
)

// figures are those of a run in which everything took factor times as much as 1.
func figures(factor int64) trial.Figures {
	ms := time.Duration(factor) * time.Millisecond
	return trial.Figures{
		Cost: []trial.Cost{{Goroutines: 1, Nanos: float64(factor) * 1000, Allocs: 4}},
		Armed: &trial.Armed{
			Informers: 10, Starting: 3, Requests: 20 * factor, Time: 2 * time.Second,
			Bare:     trial.Memory{Heap: 8000 * factor, Stacks: 2000 * factor, Goroutines: 10},
			Handlers: trial.Memory{Heap: 1000 * factor, Goroutines: 20},
		},
		Back: []trial.Cycle{{Deleted: -3 * ms, Added: 5 * ms}, {Deleted: 100 * ms, Added: ms}, {Deleted: ms, Added: 3 * ms}},
	}
}

func sample() *report.Results {
	round := func(theirs, ours int64) report.Round {
		f := figures(ours)
		f.Parked = &trial.Parked{Informers: 2, Gone: trial.Memory{Heap: 4000, Stacks: 1000, Goroutines: 12}}
		return report.Round{
			informers.ClientGo: {Armed: figures(theirs).Armed}, informers.ByHand: {Back: figures(theirs).Back}, informers.GVRKit: f,
			informers.Alone: {Parked: &trial.Parked{Informers: 2, Gone: trial.Memory{Heap: 8000, Stacks: 2000, Goroutines: 24}}},
		}
	}
	return &report.Results{
		Environment: bench.Environment{Command: "go run ./bench/leases"},
		Size:        trial.Size{Armed: 10, Settle: time.Minute, Count: 2 * time.Second, Parked: 2, Objects: 7, Cycles: 3},
		Warmup:      round(1000, 1000),
		Rounds:      []report.Round{round(4, 2), round(8, 2), round(2, 3)},
	}
}

// metric returns one by a part of its section's title, and its name; the offset-th after
// it, if offset is not 0.
func metric(t *testing.T, r *report.Results, section, name string, offset int) report.Metric {
	t.Helper()
	for _, s := range r.Sections() {
		for i, m := range s.Metrics {
			if strings.Contains(s.Title, section) && m.Name == name {
				return s.Metrics[i+offset]
			}
		}
	}
	t.Fatalf("no metric %q in %q", name, section)
	panic("unreachable")
}

func TestResults_SumUpRoundsWithoutTheFirst(t *testing.T) {
	r := sample()
	for _, tc := range []struct {
		section, name string
		offset        int
		other         string
		theirs, ours  bench.Summary
		ratio         bench.Summary
	}{
		{
			"not there", "requests then", 0, informers.ClientGo,
			bench.Summary{Median: 40, Min: 20, Max: 80},
			bench.Summary{Median: 20, Min: 20, Max: 30},
			bench.Summary{Median: .5, Min: .25, Max: 1.5},
		},
		{
			"not there", "memory of each", 0, informers.ClientGo,
			bench.Summary{Median: 4, Min: 2, Max: 8},
			bench.Summary{Median: 2, Min: 2, Max: 3},
			bench.Summary{Median: .5, Min: .25, Max: 1.5},
		},
		{
			"not there", "goroutines of each, with it", 0, informers.ClientGo,
			bench.Summary{Median: 3, Min: 3, Max: 3},
			bench.Summary{Median: 3, Min: 3, Max: 3},
			bench.Summary{Median: 1, Min: 1, Max: 1},
		},
		{
			"whose types go", "memory of each afterwards", 0, informers.Alone,
			bench.Summary{Median: 5, Min: 5, Max: 5},
			bench.Summary{Median: 2.5, Min: 2.5, Max: 2.5},
			bench.Summary{Median: .5, Min: .5, Max: .5},
		},
		{
			"comes back", "CRD deleted to the last object's deletion", 0, informers.ByHand,
			bench.Summary{Median: 4, Min: 2, Max: 8},
			bench.Summary{Median: 2, Min: 2, Max: 3},
			bench.Summary{Median: .5, Min: .25, Max: 1.5},
		},
		{
			"comes back", "first object created to its addition", 1, informers.ByHand,
			bench.Summary{Median: 20, Min: 10, Max: 40},
			bench.Summary{Median: 10, Min: 10, Max: 15},
			bench.Summary{Median: .5, Min: .25, Max: 1.5},
		},
	} {
		m := metric(t, r, tc.section, tc.name, tc.offset)
		theirs, _ := r.Values(m, tc.other)
		ours, _ := r.Values(m, informers.GVRKit)
		ratio, ok := r.Ratios(m, informers.GVRKit, tc.other)
		if theirs != tc.theirs || ours != tc.ours || !ok || ratio != tc.ratio {
			t.Errorf("%s, %s: %v, %v, %v; want %v, %v, %v", tc.section, tc.name, theirs, ours, ratio, tc.theirs, tc.ours, tc.ratio)
		}
	}
}

func TestResults_HaveNoRatioToNothingOrLess(t *testing.T) {
	r := sample()
	m := metric(t, r, "comes back", "CRD deleted to the last object's deletion", 0)
	for _, round := range r.Rounds {
		clear(round[informers.ByHand].Back)
	}
	if s, ok := r.Ratios(m, informers.GVRKit, informers.ByHand); ok {
		t.Errorf("to nothing: %v", s)
	}
	r = sample()
	for _, round := range r.Rounds {
		for i := range round[informers.GVRKit].Back {
			round[informers.GVRKit].Back[i].Deleted = -time.Millisecond
		}
	}
	if s, ok := r.Ratios(m, informers.GVRKit, informers.ByHand); ok {
		t.Errorf("of less than nothing: %v", s)
	}
	if s, ok := r.Values(m, "nobody"); ok {
		t.Errorf("of nobody: %v", s)
	}
}

func TestResults_TableTellsWhatIsWorseAndWhatIsMissed(t *testing.T) {
	var out strings.Builder
	if err := sample().WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2.00 (2.00..3.00) µs  10 µs\n", "0.5 (0.25..1.5)", "20.0 (20.0..30.0) /s  0.5 (0.25..1.5)  0 /s, MISSED", "5.0 KB  2.5 KB  0.5    70 KB\n",
		"200.0 (200.0..300.0) ms  0.5 (0.25..1.5)  100 ms, MISSED", "median of 3 rounds", "after 1m0s", "2 informers with a handler, whose types go with 7 objects each",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "MORE") || strings.Contains(out.String(), "10 at a time") {
		t.Errorf("what is not worse, or was not measured:\n%s", &out)
	}
	r := sample()
	r.Rounds = r.Rounds[2:]
	out.Reset()
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "1.5 MORE") {
		t.Errorf("nothing is worse in:\n%s", &out)
	}
}

func TestResults_TableHasNoSectionOfWhatWasNotMeasured(t *testing.T) {
	r := sample()
	for _, round := range r.Rounds {
		round[informers.GVRKit] = trial.Figures{Cost: round[informers.GVRKit].Cost}
	}
	var out strings.Builder
	if err := r.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "comes back") || !strings.Contains(out.String(), "Acquire and Release") {
		t.Errorf("table:\n%s", &out)
	}
}

func TestResults_SurviveAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.json")
	want := sample()
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := report.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := report.Read(path + "x"); err == nil {
		t.Error("a file that is not there was read")
	}
}
