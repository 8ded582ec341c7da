package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
	"github.com/gvrkit/gvrkit/bench/discovery/report"
	"github.com/gvrkit/gvrkit/bench/discovery/trial"
	"github.com/gvrkit/gvrkit/bench/launch"
)

func TestMain(m *testing.M) {
	if child.Role() != "" {
		main() // the child processes of tests are this program, too
	}
	goleak.VerifyTestMain(m)
}

func TestProgram_MeasuresInChildProcesses(t *testing.T) {
	// The race detector keeps each of the processes for a second after its end.
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"-rounds", "1", "-crds", "6", "-schema", "3000", "-poll", "20ms", "-lag", "5ms", "-asks", "20", "-rest", "30ms", "-out", dir}
	if code := program(args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "start with 6 CRDs") || !strings.Contains(stderr.String(), "round 1/1, client-go") {
		t.Errorf("output:\n%s\n%s", &stdout, &stderr)
	}
	results, err := report.Read(filepath.Join(dir, "discovery.json"))
	if err != nil {
		t.Fatal(err)
	}
	checkResults(t, results)
	if got, want := results.Environment.Command, "go run ./bench/discovery "+strings.Join(args, " "); got != want {
		t.Errorf("command %q, want %q", got, want)
	}

	var again bytes.Buffer
	if code := program([]string{"-from", filepath.Join(dir, "discovery.json")}, &again, &stderr); code != 0 {
		t.Fatalf("-from: exit code %d: %s", code, &stderr)
	}
	if again.String() != stdout.String() {
		t.Errorf("-from shows:\n%s\nwant:\n%s", &again, &stdout)
	}
}

// checkResults checks what was measured in one round on a cluster of 6 CRDs.
func checkResults(t *testing.T, results *report.Results) {
	t.Helper()
	if len(results.Rounds) != 1 || results.Crowded.CRDs != 6 || results.Plain.CRDs != 0 || results.Settings.Lag != 5*time.Millisecond {
		t.Fatalf("results: %+v", results)
	}
	for _, round := range []report.Round{results.Warmup, results.Rounds[0]} {
		for _, system := range mappers.All() {
			plain, crowded := round[system.Name].Plain, round[system.Name].Crowded
			if plain.Start.Requests == 0 || crowded.Start.Requests == 0 {
				t.Errorf("%s: %+v, %+v", system.Name, plain.Start, crowded.Start)
			}
			if (crowded.Polled == nil) != system.Brief || plain.Polled != nil {
				t.Errorf("%s: %+v, %+v", system.Name, plain.Polled, crowded.Polled)
			}
		}
	}
}

func TestProgram_UsageErrorsAreOneLineAndCode2(t *testing.T) {
	for _, args := range [][]string{
		{"-no-such-flag"},
		{"now"},
		{"-rounds", "0"},
		{"-crds", "0"},
		{"-crds", "many"},
		{"-schema", "-1"},
		{"-lag", "-1s"},
		{"-poll", "0"},
		{"-rest", "0"},
		{"-asks", "0"},
	} {
		var stdout, stderr bytes.Buffer
		if code := program(args, &stdout, &stderr); code != 2 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, &stdout, &stderr)
		}
	}
}

func TestProgram_HelpIsNoError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program([]string{"-help"}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "-crds") {
		t.Errorf("exit code %d, %q", code, &stdout)
	}
}

func TestProgram_FailsIfThereAreNoResults(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program([]string{"-from", filepath.Join(t.TempDir(), "none")}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "no such file") {
		t.Errorf("exit code %d, %q", code, &stderr)
	}
}

func TestParse_QuickLeavesWhatWasGiven(t *testing.T) {
	usual, err := parse(nil, nil)
	if err != nil || usual.rounds < 5 || usual.crds != 300 || usual.out == "" || usual.lag != 0 {
		t.Errorf("usual: %+v, %v", usual, err)
	}
	quick, err := parse([]string{"-quick"}, nil)
	if err != nil || quick.rounds >= usual.rounds || quick.crds >= usual.crds || quick.out != "" {
		t.Errorf("quick: %+v, %v", quick, err)
	}
	given, err := parse([]string{"-quick", "-rounds", "9", "-crds", "8", "-out", "x"}, nil)
	if err != nil || given.rounds != 9 || given.crds != 8 || given.out != "x" {
		t.Errorf("given: %+v, %v", given, err)
	}
}

func TestJobs_AreWhatWasAskedFor(t *testing.T) {
	s, err := parse([]string{"-rounds", "4", "-crds", "7", "-rest", "3s", "-poll", "2s", "-asks", "9"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, crowded := jobs(s, mappers.System{Name: "x"}, 2)
	if want := (trial.Job{System: "x", Rest: 3 * time.Second, Brief: true}); plain != want {
		t.Errorf("%+v, want %+v", plain, want)
	}
	want := trial.Job{System: "x", CRDs: 7, Rest: 3 * time.Second, Poll: 2 * time.Second, Phase: .625, Asks: 9}
	if crowded != want {
		t.Errorf("%+v, want %+v", crowded, want)
	}
}

func TestPhase_IsSpreadOverTheRounds(t *testing.T) {
	for rounds := 1; rounds < 8; rounds++ {
		var sum float64
		seen := map[float64]bool{}
		for n := 1; n <= rounds; n++ {
			p := phase(n, rounds)
			if p <= 0 || p >= 1 || seen[p] {
				t.Errorf("round %d of %d: %v", n, rounds, p)
			}
			seen[p] = true
			sum += p
		}
		if mean := sum / float64(rounds); mean < .49 || mean > .51 {
			t.Errorf("%d rounds: the mean is %v", rounds, mean)
		}
	}
}

func TestDefaultOut_IsTheSameDirectoryFromWherever(t *testing.T) {
	for _, dir := range []string{"../..", "..", "."} {
		t.Chdir(dir)
		path, err := filepath.Abs(launch.Results())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, filepath.Join("bench", "results")) {
			t.Errorf("from %s: %s", dir, path)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		t.Chdir(map[string]string{"../..": "bench/discovery", "..": "discovery", ".": "."}[dir])
	}
}
