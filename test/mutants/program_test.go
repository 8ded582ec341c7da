package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFirstFailure_OfEachKind(t *testing.T) {
	for name, test := range map[string]struct {
		output, want, violation string
		failed                  bool
	}{
		"a test":           {"=== RUN   TestA\n--- PASS: TestA (0.01s)\n=== RUN   TestB\n--- FAIL: TestB (0.01s)\n", "TestB", "", true},
		"a subtest":        {"=== RUN   TestA\n=== RUN   TestA/b\n    --- FAIL: TestA/b (0.01s)\n--- FAIL: TestA (0.01s)\n", "TestA/b", "", true},
		"a panic":          {"=== RUN   TestA\npanic: x\n\ngoroutine 1\n", "TestA", "", false},
		"after all passed": {"=== RUN   TestA\n--- PASS: TestA (0.01s)\nPASS\ngoleak: found a goroutine", "the end of the package", "", false},
		"before all":       {"panic: x\n", "the package", "", false},
		"a violation": {
			"=== RUN   TestChurn\n    churn_test.go:9: seed 3:\n        unique: h1: one\n        atomic: two\n        \n        define t1\n--- FAIL: TestChurn (1s)\n",
			"TestChurn", ": unique: h1: one", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, violation, failed := firstFailure(strings.NewReader(test.output), func() {})
			if got != test.want || violation != test.violation || failed != test.failed {
				t.Errorf("got %q, %q, %v, want %q, %q, %v", got, violation, failed, test.want, test.violation, test.failed)
			}
		})
	}
}

func TestProgram_ATimeoutIsNoFailure(t *testing.T) {
	for name, test := range map[string]struct {
		script           string
		killer, timedOut string
	}{
		"a test hangs": {"echo '=== RUN   TestA'; exec sleep 60", "", "TestA"},
		"a test fails": {"echo '=== RUN   TestA'; echo '--- FAIL: TestA (0.01s)'; exit 1", "TestA", ""},
		"a test exits": {"echo '=== RUN   TestA'; exit 1", "TestA", ""},
		"all pass":     {"echo PASS", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := program{path: filepath.Join(t.TempDir(), "tests"), patience: time.Minute}
			if test.timedOut != "" {
				p.patience = 500 * time.Millisecond
			}
			if err := os.WriteFile(p.path, []byte("#!/bin/sh\n"+test.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			if r, _ := p.run(t.Context(), mutant{}); r.err != nil || r.killer != test.killer || r.timedOut != test.timedOut {
				t.Errorf("killed by %q, timed out in %q, error %v, want %q, %q", r.killer, r.timedOut, r.err, test.killer, test.timedOut)
			}
		})
	}
}

// A test of the churn model may fail for other reasons than those that the model finds.
func TestProgram_OnlyAViolationOfTheModelKills(t *testing.T) {
	t.Chdir(root)
	const failed = "--- FAIL: TestChurn (1s)\n"
	for name, test := range map[string]struct {
		printed string
		code    int
		killer  string
	}{
		"a violation":               {"    churn_test.go:9: seed 3:\n        unique: h1: one\n" + failed, 1, "TestChurn: unique: h1: one"},
		"an error":                  {"    churn_test.go:9: the server does not start\n" + failed, 1, ""},
		"a panic":                   {"panic: x\n", 2, ""},
		"a goroutine after the end": {"--- PASS: TestChurn (1s)\nPASS\ngoleak: found a goroutine\n", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := program{path: filepath.Join(t.TempDir(), "tests"), dir: ofModel, patience: time.Minute}
			script := fmt.Sprintf("#!/bin/sh\ncat <<END\n=== RUN   TestChurn\n%sEND\nexit %d\n", test.printed, test.code)
			if err := os.WriteFile(p.path, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			if r, _ := p.run(t.Context(), mutant{}); r.killer != test.killer || (r.err == nil) != (test.killer != "") {
				t.Errorf("killed by %q, error %v, want %q", r.killer, r.err, test.killer)
			}
		})
	}
}
