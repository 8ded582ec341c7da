package report_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
	"github.com/gvrkit/gvrkit/bench/discovery/report"
	"github.com/gvrkit/gvrkit/bench/discovery/trial"
	bench "github.com/gvrkit/gvrkit/bench/report"
)

// run is a run that took so many milliseconds and requests, and 1000 bytes of heap for
// each of 10 CRDs more than factor says.
func run(factor int64) report.Run {
	start := trial.Start{
		First: time.Duration(factor) * time.Millisecond, FirstRequests: factor, Requests: 2 * factor, Bytes: factor * 1e6, Heap: 50_000, FullHeap: 60_000,
	}
	r := report.Run{Plain: trial.Figures{Start: start}}
	start.Heap += 10_000 * factor
	r.Crowded = trial.Figures{
		Start:   start,
		Mapping: &trial.Warm{Nanos: float64(factor) * 500, Allocs: float64(factor)},
		Unknown: &trial.Unknown{Asks: 100, Requests: 0, Nanos: 3000},
		Polled:  &trial.Arrival{Latency: time.Duration(factor) * time.Second, Requests: 8},
	}
	return r
}

func sample() *report.Results {
	round := func(client, ours int64) report.Round {
		theirs, own := run(client), run(ours)
		theirs.Crowded.Noticed = &trial.Unknown{Asks: 5, Requests: 10, Nanos: 9000}
		own.Crowded.Awaited = &trial.Arrival{Latency: 5 * time.Millisecond}
		return report.Round{mappers.ClientGo: theirs, mappers.ControllerRuntime: run(client), mappers.GVRKit: own, mappers.GVRKitAsking: run(7)}
	}
	return &report.Results{
		Environment: bench.Environment{Command: "go run ./bench/discovery"},
		Settings:    report.Settings{Poll: 100 * time.Millisecond, Asks: 100},
		Plain:       cluster.Facts{Types: 70}, Crowded: cluster.Facts{CRDs: 10, BytesPerCRD: 4711},
		Warmup: round(1000, 1000),
		Rounds: []report.Round{round(4, 2), round(8, 2), round(2, 3)},
	}
}

// metric returns one by the beginning of its section's title, and its name.
func metric(t *testing.T, r *report.Results, section, name string) report.Metric {
	t.Helper()
	for _, s := range r.Sections() {
		for _, m := range s.Metrics {
			if strings.HasPrefix(s.Title, section) && m.Name == name {
				return m
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
		client, ours  bench.Summary
		ratio         bench.Summary
	}{
		{
			"cold", "time",
			bench.Summary{Median: 4, Min: 2, Max: 8},
			bench.Summary{Median: 2, Min: 2, Max: 3},
			bench.Summary{Median: .5, Min: .25, Max: 1.5},
		},
		{
			"cold", "requests, gvrkit without Run",
			bench.Summary{Median: 8, Min: 4, Max: 16},
			bench.Summary{Median: 14, Min: 14, Max: 14},
			bench.Summary{Median: 1.75, Min: .875, Max: 3.5},
		},
		{
			"retained", "per CRD",
			bench.Summary{Median: 4, Min: 2, Max: 8},
			bench.Summary{Median: 2, Min: 2, Max: 3},
			bench.Summary{Median: .5, Min: .25, Max: 1.5},
		},
		{
			"100 warm resolves: RESTMapping", "time of one",
			bench.Summary{Median: 2, Min: 1, Max: 4},
			bench.Summary{Median: 1, Min: 1, Max: 1.5},
			bench.Summary{Median: .5, Min: .25, Max: 1.5},
		},
		{
			"a new CRD; awaited", "from Established to the first mapping",
			bench.Summary{Median: 4000, Min: 2000, Max: 8000},
			bench.Summary{Median: 5, Min: 5, Max: 5},
			bench.Summary{Median: .00125, Min: .000625, Max: .0025},
		},
		{
			"a new CRD, polled", "requests",
			bench.Summary{Median: 8, Min: 8, Max: 8},
			bench.Summary{Median: 8, Min: 8, Max: 8},
			bench.Summary{Median: 1, Min: 1, Max: 1},
		},
	} {
		m := metric(t, r, tc.section, tc.name)
		client, _ := r.Values(m, mappers.ClientGo)
		ours, _ := r.Values(m, mappers.GVRKit)
		ratio, ok := r.Ratios(m, mappers.GVRKit, mappers.ClientGo)
		if client != tc.client || ours != tc.ours || !ok || ratio != tc.ratio {
			t.Errorf("%s, %s: %v, %v, %v; want %v, %v, %v", tc.section, tc.name, client, ours, ratio, tc.client, tc.ours, tc.ratio)
		}
	}
}

func TestResults_RequestsAreOfAsManyAsks(t *testing.T) {
	r := sample()
	plainly, _ := r.Values(metric(t, r, "100 asks", "requests"), mappers.ClientGo)
	noticing, _ := r.Values(metric(t, r, "the same", "requests"), mappers.ClientGo)
	others, _ := r.Values(metric(t, r, "the same", "requests"), mappers.GVRKit)
	if plainly.Median != 0 || noticing.Median != 200 || others.Median != 0 {
		t.Errorf("%v, %v, %v", plainly, noticing, others)
	}
}

func TestResults_HaveNoRatioToNothing(t *testing.T) {
	r := sample()
	if s, ok := r.Ratios(metric(t, r, "100 asks", "requests"), mappers.GVRKit, mappers.ClientGo); ok {
		t.Errorf("to no requests: %v", s)
	}
	if s, ok := r.Values(metric(t, r, "100 warm resolves: ResolveGVK", "time of one"), mappers.GVRKit); ok {
		t.Errorf("of what was not measured: %v", s)
	}
	if s, ok := r.Ratios(metric(t, r, "cold", "time"), mappers.GVRKit, "nobody"); ok {
		t.Errorf("to nobody: %v", s)
	}
}

func TestResults_TableTellsWhereGVRKitIsWorseAndWhatItMisses(t *testing.T) {
	var out strings.Builder
	r := sample()
	r.WriteTable(&out)
	for _, want := range []string{
		"no CRDs: 70 types", "10 CRDs: ", "a CRD has 4711 bytes", "polls every 100ms", "median of 3 rounds",
		"2.0 (2.0-3.0) ms", "0.5 (0.25-1.5)", "1.75 (0.875-3.5) MORE",
		"100 warm resolves: RESTMapping: allocations of one 2.00, and should be at most 1.00\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "0.5 (0.25-1.5) MORE") || strings.Contains(line, "time of one 1.00 µs, and should") {
			t.Errorf("line %q", line)
		}
	}
	for _, round := range r.Rounds {
		round[mappers.GVRKit].Crowded.Mapping.Allocs = 1
	}
	out.Reset()
	r.WriteTable(&out)
	if want := "100 warm resolves: RESTMapping: within its limits: time of one 1.00 µs, allocations of one 1.00, requests 0\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, &out)
	}
}

func TestResults_TableIsAligned(t *testing.T) {
	var out strings.Builder
	sample().WriteTable(&out)
	var columns []int // where they begin
	for line := range strings.Lines(out.String()) {
		runes := []rune(strings.TrimSuffix(line, "\n"))
		switch {
		case !strings.HasPrefix(line, "  "):
		case columns == nil:
			for i := 2; i < len(runes); i++ {
				if runes[i] != ' ' && string(runes[i-2:i]) == "  " {
					columns = append(columns, i)
				}
			}
			if len(columns) != 5 {
				t.Fatalf("the first line is %q", line)
			}
		default:
			for _, i := range columns {
				if runes[i] == ' ' || string(runes[i-2:i]) != "  " {
					t.Errorf("column %d of %q", i, line)
				}
			}
		}
	}
	if columns == nil {
		t.Errorf("no header in:\n%s", &out)
	}
}

func TestResults_SurviveAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "discovery.json")
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
