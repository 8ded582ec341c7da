package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/report"
	"github.com/gvrkit/gvrkit/bench/servers"
)

func TestMain(m *testing.M) {
	if child.Role() != "" {
		main() // the child processes of tests are this program, too
	}
	goleak.VerifyTestMain(m)
}

func TestProgram_MeasuresInChildProcesses(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"-servers", "stub", "-objects", "50", "-events", "100", "-rounds", "2", "-systems", "gvrkit", "-kinds", "mix", "-out", dir}
	if code := program(args, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "stub, mix, 50 objects") || !strings.Contains(stderr.String(), "round 2/2, client-go") {
		t.Errorf("output:\n%s\n%s", &stdout, &stderr)
	}
	results, err := report.Read(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := results.Cases[0]
	if len(results.Cases) != 1 || len(c.Rounds) != 2 || len(c.Warmup) != 2 || c.Rounds[0]["gvrkit"].SyncCPU <= 0 {
		t.Errorf("results: %+v", c)
	}

	again := filepath.Join(dir, "plots")
	var shown bytes.Buffer
	if code := program([]string{"-from", filepath.Join(dir, "results.json"), "-plots", again}, &shown, &stderr); code != 0 {
		t.Fatalf("-from: exit code %d: %s", code, &stderr)
	}
	if shown.String() != stdout.String() {
		t.Errorf("-from shows:\n%s\nwant:\n%s", &shown, &stdout)
	}
	for _, d := range []string{dir, again} {
		if _, err := os.Stat(filepath.Join(d, "stub-mix-50.svg")); err != nil {
			t.Error(err)
		}
	}
}

func TestProgram_UsageErrorsAreOneLineAndCode2(t *testing.T) {
	for _, args := range [][]string{
		{"-no-such-flag"},
		{"-objects", "many"},
		{"-objects", "0"},
		{"-kinds", "pods"},
		{"-systems", "informers"},
		{"-servers", "kind"},
		{"-rounds", "0"},
		{"-plots", "x"},
		{"now"},
	} {
		var stdout, stderr bytes.Buffer
		if code := program(args, &stdout, &stderr); code != 2 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, &stdout, &stderr)
		}
	}
}

func TestProgram_HelpIsNoError(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program([]string{"-help"}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "-cpuprofile") {
		t.Errorf("exit code %d, %q", code, &stdout)
	}
}

func TestProgram_FailsIfThereAreNoResults(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program([]string{"-from", filepath.Join(t.TempDir(), "none")}, &stdout, &stderr); code != 1 || !strings.Contains(stderr.String(), "no such file") {
		t.Errorf("exit code %d, %q", code, &stderr)
	}
}

func TestInProcess_FailuresComeWithTheirReason(t *testing.T) {
	sort, err := servers.Named("stub")
	if err != nil {
		t.Fatal(err)
	}
	kind, err := objects.Named("mix")
	if err != nil {
		t.Fatal(err)
	}
	server, err := sort.Start(t.Context(), kind, 20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	job := measure.Job{System: "gvrkit", Kind: "mix", Objects: 20, Events: 1, Server: server.Connection()}
	broken := errors.New("the server is broken")
	_, err = measure.InProcess(t.Context(), job, func(context.Context, int) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("a server that makes no changes: %v", err)
	}
	other := job
	other.Objects = 19
	_, err = measure.InProcess(t.Context(), other, server.Change)
	if err == nil || !strings.Contains(err.Error(), "gvrkit, 19 objects of mix: after the sync: 20 objects are cached") {
		t.Errorf("a cache with too much: %v", err)
	}
	if _, err := measure.InProcess(t.Context(), job, server.Change); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestPlan_SlowServersGetFewSystemsAndNoLargeCases(t *testing.T) {
	s, err := parse([]string{"-objects", "10,20000"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, st := range plan(s) {
		count[st.server.Name] += len(st.systems)
		if st.server.Slow && (st.objects > slowLimit || st.events != 2000) {
			t.Errorf("%s: %d objects, %d events", st.server.Name, st.objects, st.events)
		}
	}
	if kinds := 2; count["embedded"] != 3*kinds || count["stub"] != 2*kinds*len(s.systems) {
		t.Errorf("systems run: %v", count)
	}
	chosen, err := parse([]string{"-systems", "gvrkit-list", "-servers", "embedded", "-quick"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range plan(chosen) {
		if len(st.systems) != 2 || st.systems[0].Name != "client-go" || st.objects != 1000 || st.events != 1000 {
			t.Errorf("chosen: %+v", st)
		}
	}
}
