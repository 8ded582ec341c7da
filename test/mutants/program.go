package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	killer, silence, err := p.run(ctx, "")
	if killer != "" {
		err = fmt.Errorf("without a mutant, a test fails: %s", killer)
	}
	p.duration, p.patience = time.Since(begun), 5*silence+20*time.Second
	return p, err
}

// result is the result of the tests with a mutant. The killer is empty if all pass.
type result struct {
	mutant
	killer string
	err    error
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
				killer, _, err := p.run(ctx, m.name)
				results <- result{m, killer, err}
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	return results
}

// run runs the tests with the mutant of that name until one fails. It returns the name of that test, or
// "" if all pass, and the longest time without output.
func (p program) run(ctx context.Context, name string) (killer string, silence time.Duration, err error) {
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	cmd := exec.CommandContext(ctx, p.path, "-test.v", "-test.failfast", "-test.timeout=0")
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), variable+"="+name)
	output, err := cmd.StdoutPipe()
	if err != nil {
		return "", 0, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return "", 0, err
	}
	timeout, before := time.AfterFunc(p.patience, func() { kill(errTimeout) }), time.Now()
	last, failed := firstFailure(output, func() {
		timeout.Reset(p.patience)
		silence, before = max(silence, time.Since(before)), time.Now()
	})
	if failed {
		kill(nil)
	}
	err = cmd.Wait()
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return "", silence, nil
	case failed:
		return last, silence, nil
	case errors.Is(context.Cause(ctx), errTimeout):
		return last + " (timed out)", silence, nil
	case exited && ctx.Err() == nil:
		return last, silence, nil
	}
	return "", silence, err
}

// firstFailure reads the output of a test program until a test fails, and calls read after each line. If
// no test fails, it reads all, and returns what ran last.
func firstFailure(output io.Reader, read func()) (name string, failed bool) {
	name = "the package"
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		read()
		line = strings.TrimSpace(line)
		if test, begins := strings.CutPrefix(line, "=== RUN "); begins {
			name = strings.TrimSpace(test)
		} else if test, failed := strings.CutPrefix(line, "--- FAIL: "); failed {
			name, _, _ = strings.Cut(test, " ")
			return name, true
		} else if line == "PASS" {
			name = "the end of the package" // goleak
		}
		if err != nil {
			return name, false
		}
	}
}
