package report_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/report"
)

func TestSummarize_MedianMinAndMax(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		want   report.Summary
	}{
		{[]float64{4}, report.Summary{Median: 4, Min: 4, Max: 4}},
		{[]float64{3, 1, 2}, report.Summary{Median: 2, Min: 1, Max: 3}},
		{[]float64{9, 1, 2, 4}, report.Summary{Median: 3, Min: 1, Max: 9}},
	} {
		before := append([]float64(nil), tc.values...)
		if got, ok := report.Summarize(tc.values); !ok || got != tc.want {
			t.Errorf("%v: %v, want %v", tc.values, got, tc.want)
		}
		if diff := cmp.Diff(before, tc.values); diff != "" {
			t.Errorf("the values were changed:\n%s", diff)
		}
	}
	if _, ok := report.Summarize(nil); ok {
		t.Error("there is a summary of nothing")
	}
}

func figures(syncCPU, eventWall time.Duration) measure.Figures {
	return measure.Figures{
		Objects: 100, Events: 50, SyncCPU: syncCPU, EventCPU: time.Second, EventWall: eventWall,
		SyncAllocs: 2000, RetainedHeap: 5000, PeakRSS: 3 << 20, GCCPU: 4 * time.Millisecond,
	}
}

func sample() *report.Results {
	return &report.Results{
		Reference: "old",
		Cases: []*report.Case{{
			Server: "stub", Kind: "mix", Objects: 100, Events: 50, Paced: true, Systems: []string{"old", "new"},
			Corpus: report.Corpus{BytesPerObject: 4000, CompressedBytesPerObject: 500},
			Warmup: report.Round{"old": figures(time.Hour, time.Hour), "new": figures(time.Second, time.Second)},
			Rounds: []report.Round{
				{"old": figures(4*time.Second, time.Second), "new": figures(2*time.Second, 500*time.Millisecond)},
				{"old": figures(8*time.Second, time.Second), "new": figures(2*time.Second, 250*time.Millisecond)},
				{"old": figures(10*time.Second, time.Second), "new": figures(time.Second, time.Second)},
			},
		}},
	}
}

func metric(t *testing.T, name string) report.Metric {
	t.Helper()
	for _, m := range report.Metrics() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no metric %q", name)
	panic("unreachable")
}

func TestCase_RatiosAreThoseOfTheSameRoundWithoutTheFirst(t *testing.T) {
	c := sample().Cases[0]
	got, ok := c.Ratios(metric(t, "sync CPU"), "new", "old")
	if want := (report.Summary{Median: .25, Min: .1, Max: .5}); !ok || got != want {
		t.Errorf("sync CPU: %v, want %v", got, want)
	}
	got, ok = c.Ratios(metric(t, "events/s"), "new", "old")
	if want := (report.Summary{Median: 2, Min: 1, Max: 4}); !ok || got != want {
		t.Errorf("events/s: %v, want %v", got, want)
	}
	got, ok = c.Values(metric(t, "sync CPU"), "old")
	if want := (report.Summary{Median: 80_000, Min: 40_000, Max: 100_000}); !ok || got != want {
		t.Errorf("sync CPU in µs: %v, want %v", got, want)
	}
	if _, ok := c.Ratios(metric(t, "sync CPU"), "newer", "old"); ok {
		t.Error("there are ratios of a system that was not run")
	}
}

func TestCase_HasNoRateWhereTheServerSetsThePace(t *testing.T) {
	c := sample().Cases[0]
	c.Paced = false
	if _, ok := c.Ratios(metric(t, "events/s"), "new", "old"); ok {
		t.Error("events/s")
	}
}

func TestResults_TableHasRatiosAndTheFiguresOfTheReference(t *testing.T) {
	var out strings.Builder
	if err := sample().WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"stub, mix, 100 objects of 4000 bytes (500 compressed)", "80000 µs/object", "0.25 (0.10-0.50)", "20 /object", "50 B/object", "3 MiB", "4.0 ms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestResults_SurviveAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	want := sample()
	want.Environment = report.CurrentEnvironment("go run ./bench", []string{"-quick"})
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
	if got.Environment.Command != "go run ./bench -quick" || got.Environment.Go == "" || got.Environment.Cores == 0 {
		t.Errorf("environment: %+v", got.Environment)
	}
}
