package report_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	bench "github.com/gvrkit/gvrkit/bench/report"
	"github.com/gvrkit/gvrkit/bench/types/report"
	"github.com/gvrkit/gvrkit/bench/types/server"
	"github.com/gvrkit/gvrkit/bench/types/trial"
)

// round is one in which gvrkit took n ms and n requests, and client-go other ms and none.
func round(n, other int64) report.Round {
	figures := func(n, requests int64) trial.Figures {
		ms := time.Duration(n) * time.Millisecond
		return trial.Figures{Returned: ms, Synced: ms, ReturnedCPU: ms, RestCPU: ms, Before: requests, Bytes: requests * 1000}
	}
	return report.Round{trial.ClientGo: figures(other, 0), trial.Acquire: figures(n, n), trial.ForResource: figures(1, 1), trial.Alone: figures(n, 0)}
}

func sample(types int) *report.Results {
	return &report.Results{Cases: []*report.Case{
		{
			Server: server.Embedded, Size: server.Size{CRDs: 200, SchemaBytes: 300, Objects: 5}, Types: types,
			Warmup: round(1000, 1), Rounds: []report.Round{round(30, 10), round(10, 10), round(25, 10)},
		},
		{Server: server.KubeAPIServer, Types: types}, // not measured
	}}
}

func TestCase_SumsUpRoundsWithoutTheFirst(t *testing.T) {
	c := sample(1).Cases[0]
	m := report.Metrics(1)[0]
	if got, want := c.Values(m, trial.Acquire), (bench.Summary{Median: 25, Min: 10, Max: 30}); got != want {
		t.Errorf("values: %v, want %v", got, want)
	}
	if got, want := c.Ratios(m, trial.Acquire), (bench.Summary{Median: 2.5, Min: 1, Max: 3}); got != want {
		t.Errorf("ratios: %v, want %v", got, want)
	}
	if got := c.Ratios(report.Metrics(1)[4], trial.Acquire); got != (bench.Summary{}) {
		t.Errorf("ratios to nothing: %v", got)
	}
}

func TestResults_TableTellsWhichTargetIsMissed(t *testing.T) {
	for types, want := range map[int][]string{
		1: {
			"until its wait returns          10.0 ms    25.0 (10.0..30.0) ms; 2.50 (1.00..3.00)  1.0 ms; 0.10  25.0 (10.0..30.0) ms; 2.50 (1.00..3.00)  20 ms, MISSED by Acquire\n",
			"ratio 2.0, MISSED by Acquire\n", "4, MISSED by Acquire\n", "400 KB\n", "median of 3 (min..max)", "1 of their types are watched, with 5 objects each",
		},
		200: {"ratio 0.8, MISSED by Acquire\n", "ratio 1.0, MISSED by Acquire\n", "200 CRDs with schemas of 300 bytes"},
	} {
		var out strings.Builder
		if err := sample(types).WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in:\n%s", want, &out)
			}
		}
		if strings.Contains(out.String(), "MISSED by ForResource") || strings.Contains(out.String(), server.KubeAPIServer+",") {
			t.Errorf("what is not missed, or was not measured:\n%s", &out)
		}
	}
}

func TestResults_SurviveAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "types.json")
	want := sample(200)
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
}
