package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/launch"
	"github.com/gvrkit/gvrkit/bench/leases/informers"
	"github.com/gvrkit/gvrkit/bench/leases/report"
	"github.com/gvrkit/gvrkit/bench/leases/trial"
)

func TestMain(m *testing.M) {
	if child.Role() != "" {
		main() // the child processes of tests are this program, too
	}
	goleak.VerifyTestMain(m)
}

// The parts that take a real API server are not run here: tests of this module need none.
func TestProgram_MeasuresInChildProcesses(t *testing.T) {
	// The race detector keeps each of the processes for a second after its end.
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"-parts", "cost,armed", "-rounds", "2", "-pairs", "200", "-armed", "5", "-settle", "300ms", "-count", "200ms", "-out", dir}
	if code := program(args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "5 informers on types that are not there") || !strings.Contains(stderr.String(), "round 2/2, armed, client-go") {
		t.Errorf("output:\n%s\n%s", &stdout, &stderr)
	}
	results, err := report.Read(filepath.Join(dir, "leases.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(results.Rounds) != 2 || results.Size.Armed != 5 {
		t.Fatalf("results: %+v", results)
	}
	for _, round := range append(results.Rounds, results.Warmup) {
		theirs, ours := round[informers.ClientGo], round[informers.GVRKit]
		if theirs.Armed == nil || theirs.Cost != nil || ours.Armed == nil || len(ours.Cost) != len(trial.Goroutines()) {
			t.Errorf("client-go: %+v, gvrkit: %+v", theirs, ours)
		}
	}
	if got, want := results.Environment.Command, "go run ./bench/leases "+strings.Join(args, " "); got != want {
		t.Errorf("command %q, want %q", got, want)
	}

	var again bytes.Buffer
	if code := program([]string{"-from", filepath.Join(dir, "leases.json")}, &again, &stderr); code != 0 {
		t.Fatalf("-from: exit code %d: %s", code, &stderr)
	}
	if again.String() != stdout.String() {
		t.Errorf("-from shows:\n%s\nwant:\n%s", &again, &stdout)
	}
}

func TestProgram_UsageErrorsAreOneLineAndCode2(t *testing.T) {
	for _, args := range [][]string{
		{"-no-such-flag"},
		{"now"},
		{"-rounds", "0"},
		{"-rounds", "many"},
		{"-pairs", "0"},
		{"-armed", "0"},
		{"-settle", "-1s"},
		{"-count", "0"},
		{"-parked", "0"},
		{"-objects", "0"},
		{"-cycles", "0"},
		{"-parts", "cost,everything"},
		{"-parts", ""},
	} {
		var stdout, stderr bytes.Buffer
		if code := program(args, &stdout, &stderr); code != 2 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, &stdout, &stderr)
		}
	}
}

func TestProgram_HelpIsNoError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program([]string{"-help"}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "-cycles") {
		t.Errorf("exit code %d, %q", code, &stdout)
	}
}

func TestProgram_FailsIfThereAreNoResults(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program([]string{"-from", filepath.Join(t.TempDir(), "none")}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "no such file") {
		t.Errorf("exit code %d, %q", code, &stderr)
	}
}

func TestParse_QuickIsLess(t *testing.T) {
	usual, err := parse(nil, nil)
	if err != nil || usual.rounds < 3 || usual.size.Armed != 1000 || usual.size.Count != 20*time.Second || usual.out == "" || !slices.Equal(usual.parts, trial.Parts()) {
		t.Errorf("usual: %+v, %v", usual, err)
	}
	quick, err := parse([]string{"-quick"}, nil)
	if err != nil || quick.rounds >= usual.rounds || quick.size.Armed >= usual.size.Armed || quick.size.Cycles >= usual.size.Cycles || quick.out != "" {
		t.Errorf("quick: %+v, %v", quick, err)
	}
}

func TestParse_QuickLeavesWhatWasGiven(t *testing.T) {
	given, err := parse([]string{"-quick", "-rounds", "9", "-armed", "8", "-parts", "back", "-out", "x"}, nil)
	if err != nil || given.rounds != 9 || given.size.Armed != 8 || given.out != "x" || !slices.Equal(given.parts, []trial.Part{trial.PartBack}) {
		t.Errorf("given: %+v, %v", given, err)
	}
}

func TestSettings_TheRoundThatDoesNotCountIsNoLonger(t *testing.T) {
	for _, args := range [][]string{nil, {"-quick"}, {"-settle", "1s", "-count", "10ms", "-cycles", "1"}} {
		s, err := parse(args, nil)
		if err != nil {
			t.Fatal(err)
		}
		short := s.short()
		if short.Settle > s.size.Settle || short.Count > s.size.Count || short.Cycles > s.size.Cycles || short.Armed != s.size.Armed || short.Parked != s.size.Parked {
			t.Errorf("%q: %+v of %+v", args, short, s.size)
		}
	}
}

func TestDefaultOut_IsTheSameDirectoryFromWherever(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "..", "../.."} {
		t.Chdir(filepath.Join(here, dir))
		path, err := filepath.Abs(launch.Results())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, filepath.Join("bench", "results")) {
			t.Errorf("from %s: %s", dir, path)
		}
	}
}
