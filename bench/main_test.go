package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProgram_UsageErrorsAreOneLineAndCode2(t *testing.T) {
	for _, args := range [][]string{{"-no-such-flag"}, {"-rounds", "many"}, {"-rounds", "-1"}, {"-cases", "("}, {"everything"}} {
		var stdout, stderr bytes.Buffer
		if code := program(args, &stdout, &stderr); code != 2 || stdout.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, &stdout, &stderr)
		}
	}
}

func TestProgram_HelpListsScenariosAndFlags(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := program([]string{"-help"}, &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), "-quick") {
		t.Errorf("exit code %d, %q", code, &stdout)
	}
	for _, s := range scenarios() {
		if !strings.Contains(stdout.String(), "  "+s.Name+": "+s.About+"\n") {
			t.Errorf("no %s in:\n%s", s.Name, &stdout)
		}
	}
}

func TestScenarios_HaveCompleteCases(t *testing.T) {
	for _, s := range scenarios() {
		for _, quick := range []bool{true, false} {
			names := map[string]bool{}
			for _, c := range s.Cases(quick) {
				metrics := map[string]bool{}
				for _, m := range c.Metrics {
					metrics[m.Name] = true
				}
				if names[c.Name] || len(metrics) != len(c.Metrics) || len(c.Contestants) == 0 || c.Rounds < 1 || c.Title == "" || c.Start == nil {
					t.Errorf("%s: %+v", s.Name, c)
				}
				names[c.Name] = true
			}
		}
	}
}

func TestScenarios_QuickRunsHaveFewerRounds(t *testing.T) {
	count := func(quick bool) (n int) {
		for _, s := range scenarios() {
			for _, c := range s.Cases(quick) {
				n += c.Rounds
			}
		}
		return n
	}
	if quick, full := count(true), count(false); quick*2 > full {
		t.Errorf("%d rounds, and %d in full", quick, full)
	}
}
