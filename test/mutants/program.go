package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// program is a test program with mutants.
type program struct {
	path     string
	dir      string        // of the tests
	duration time.Duration // of all tests without a mutant
	patience time.Duration // how long the program may run without output before a test has timed out
}

// ofModel is the directory of the tests of the churn model. Of these, only a violation kills a mutant.
const ofModel = "test/envtest/churn"

// errTimeout is the cause of the end of a program that has no output for too long.
var errTimeout = errors.New("timed out")

// compile compiles the tests in the directory tests with mutants, which are by directory, and runs
// them without a mutant.
func compile(ctx context.Context, scratch, tests string, mutants map[string][]mutant) (program, error) {
	replace := map[string]string{} // the overlay: files by the path of the file that they replace
	for dir, of := range mutants {
		files, err := load(dir)
		if err != nil {
			return program{}, err
		}
		sources, err := schemata(files, of)
		if err != nil {
			return program{}, err
		}
		for path, src := range sources {
			original, err := filepath.Abs(path)
			if err != nil {
				return program{}, err
			}
			replace[original] = filepath.Join(scratch, strings.ReplaceAll(path, "/", "_"))
			if err := os.WriteFile(replace[original], src, 0o600); err != nil {
				return program{}, err
			}
		}
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return program{}, err
	}
	overlay := filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(overlay, content, 0o600); err != nil {
		return program{}, err
	}
	p := program{path: filepath.Join(scratch, "tests"), dir: tests, patience: 10 * time.Minute}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", p.path, "-overlay", overlay, "./"+tests)
	if output, err := build.CombinedOutput(); err != nil {
		return program{}, fmt.Errorf("%w\n%s", err, output)
	}
	begun := time.Now()
	r, silence := p.run(ctx, mutant{})
	if r.killer != "" || r.timedOut != "" {
		r.err = fmt.Errorf("without a mutant, a test fails: %s", cmp.Or(r.killer, r.timedOut+" (timed out)"))
	}
	p.duration, p.patience = time.Since(begun), 5*silence+75*time.Second // some tests wait for a minute before they fail
	return p, r.err
}

// result is the result of the tests with a mutant. If all pass, killer and timedOut are empty.
type result struct {
	mutant
	killer   string // the first test that fails, with the first violation that it reports
	timedOut string // the test that ran when the program had no output for too long: the mutant survives
	err      error
}

// runAll runs the tests with each of the mutants, two at a time.
func (p program) runAll(ctx context.Context, mutants []mutant) <-chan result {
	next, results := make(chan mutant, len(mutants)), make(chan result, len(mutants))
	for _, m := range mutants {
		next <- m
	}
	close(next)
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for m := range next {
				r, _ := p.run(ctx, m)
				results <- r
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	return results
}

// run runs the tests with a mutant, or without one if it has no name, until one fails. It returns the result, and the
// longest time without output.
func (p program) run(ctx context.Context, m mutant) (r result, silence time.Duration) {
	r.mutant = m
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	cmd := exec.CommandContext(ctx, p.path, "-test.v", "-test.failfast", "-test.timeout=0")
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), variable+"="+m.name)
	output, err := cmd.StdoutPipe()
	if err != nil {
		r.err = err
		return r, 0
	}
	cmd.Stderr = cmd.Stdout
	if r.err = cmd.Start(); r.err != nil {
		return r, 0
	}
	timeout, before := time.AfterFunc(p.patience, func() { kill(errTimeout) }), time.Now()
	last, violation, failed := firstFailure(output, func() {
		timeout.Reset(p.patience)
		silence, before = max(silence, time.Since(before)), time.Now()
	})
	if failed {
		kill(nil)
	}
	err = cmd.Wait()
	_, exited := errors.AsType[*exec.ExitError](err)
	fails := failed || exited && ctx.Err() == nil
	switch {
	case fails && p.dir == ofModel && violation == "":
		r.err = fmt.Errorf("%s fails without a violation", last)
	case err == nil:
	case fails:
		r.killer = last + violation
	case errors.Is(context.Cause(ctx), errTimeout):
		r.timedOut = last
	default:
		r.err = err
	}
	return r, silence
}

// firstFailure reads the output of a test program until a test fails, and calls read after each line. It returns the
// name of the test and, of a test of the churn model, the first violation. If no test fails, it reads all, and
// returns what ran last.
func firstFailure(output io.Reader, read func()) (name, violation string, failed bool) {
	name = "the package"
	found := violations{}
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		read()
		line = strings.TrimSpace(line)
		found.read(line)
		if test, begins := strings.CutPrefix(line, "=== RUN "); begins {
			name, found = strings.TrimSpace(test), violations{}
		} else if test, failed := strings.CutPrefix(line, "--- FAIL: "); failed {
			name, _, _ = strings.Cut(test, " ")
			return name, found.text(), true
		} else if line == "PASS" {
			name = "the end of the package" // goleak
		}
		if err != nil {
			return name, "", false
		}
	}
}

// violations reads the output of tests of the churn model, which print the violations of a seed below a line that names the
// seed.
type violations struct {
	below bool   // the next line has a violation
	first string // the first violation
}

var seedLine = regexp.MustCompile(`^churn_test\.go:\d+: seed \d+:$`)

func (v *violations) read(line string) {
	switch {
	case v.first != "":
	case seedLine.MatchString(line):
		v.below = true
	case v.below:
		v.first, v.below = line, false
	}
}

// text returns the first violation for a report, or "".
func (v *violations) text() string {
	const longest = 200
	switch runes := []rune(v.first); {
	case v.first == "":
		return ""
	case len(runes) > longest:
		return ": " + string(runes[:longest]) + "…"
	}
	return ": " + v.first
}
