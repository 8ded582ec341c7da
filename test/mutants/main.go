// Command mutants tests the tests: it changes the library in one way after another, and runs the
// tests. It prints a line for each mutant with the first tests that fail, and whether they ended by a
// timeout. It fails if a mutant survives, which means that no test fails, or if a mutant does not
// compile or does not fit the source.
//
//	go run ./test/mutants [part of a mutant's name, package or function …]
//
// Mutants are applied with the overlay of the go command, and no file of the source is written.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// table has mutants of one package, and the package whose tests must kill them.
type table struct {
	dir     string // of the mutants, below the root of the module
	tests   string // directory of the tests
	mutants []mutant
}

// mutant is a change that breaks the library.
type mutant struct {
	name   string
	decl   string // the changed declaration: "function", "Type.Method", or another name
	change change
}

// tables has all mutants. The code that a mutant changes must occur once in its declaration, so a
// change of the library may require a change of a mutant.
var tables = slices.Concat(ofDynamicinformer, ofSource, ofTypestate, ofHandlers, ofStatus, ofDiscovery, ofNarrowRuns, ofWire)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, parts []string) error {
	scratch, err := os.MkdirTemp("", "gvrkit-mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // in the system's temporary directory
	begun, tried, survived := time.Now(), 0, 0
	for _, t := range tables {
		for _, m := range t.mutants {
			where := t.dir + "." + m.decl
			if !wanted(m.name+" "+where, parts) {
				continue
			}
			tried++
			killers, err := try(ctx, scratch, t, m)
			switch {
			case err != nil:
				return fmt.Errorf("%s (%s): %w", m.name, where, err)
			case killers == nil:
				survived++
				fmt.Printf("SURVIVED %s (%s)\n", m.name, where)
			default:
				fmt.Printf("killed   %s: %s\n", m.name, strings.Join(killers[:min(2, len(killers))], ", "))
			}
		}
	}
	fmt.Printf("%d mutants, %d killed in %v\n", tried, tried-survived, time.Since(begun).Round(time.Second))
	switch {
	case tried == 0:
		return errors.New("no mutant matches")
	case survived > 0:
		return fmt.Errorf("%d survived", survived)
	}
	return nil
}

func wanted(name string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(name, part) })
}

// try returns the tests that fail with m, or nil if all pass.
func try(ctx context.Context, scratch string, t table, m mutant) ([]string, error) {
	overlay, err := writeOverlay(scratch, t, m)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-vet=off", "-failfast", "-timeout=2m", "-overlay", overlay, "./"+t.tests)
	output, err := cmd.Output()
	var exit *exec.ExitError
	if err == nil {
		return nil, nil
	}
	if !errors.As(err, &exit) || ctx.Err() != nil {
		return nil, err
	}
	return failures(output)
}

// writeOverlay writes the mutated file and an overlay that replaces the original by it. It returns the
// path of the overlay.
func writeOverlay(scratch string, t table, m mutant) (string, error) {
	files, err := load(t.dir)
	if err != nil {
		return "", err
	}
	file, src, err := m.apply(files)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(scratch, "mutated.go")
	if err := os.WriteFile(mutated, src, 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

// failures returns the failed tests in the output of go test -json. If the process ended early, it
// returns the tests that were running. A failed build is an error, because then no test ran.
func failures(output []byte) ([]string, error) {
	var build strings.Builder
	var failed []string
	running := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, len(output)+1)
	for lines.Scan() {
		var event struct{ Action, Test, Output, FailedBuild string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // a line that is not an event
		}
		switch {
		case event.Action == "build-output":
			build.WriteString(event.Output)
		case event.FailedBuild != "":
			return nil, fmt.Errorf("the mutant does not compile:\n%s", build.String())
		case event.Test == "":
		case event.Action == "run":
			running[event.Test] = true
		case event.Action == "pass" || event.Action == "fail":
			delete(running, event.Test)
			if event.Action == "fail" {
				failed = append(failed, event.Test)
			}
		}
	}
	if failed == nil {
		failed = slices.Sorted(maps.Keys(running))
	}
	if failed == nil {
		failed = []string{"the end of the package"} // goleak
	}
	if bytes.Contains(output, []byte("panic: test timed out after")) {
		failed[0] += " (timed out)"
	}
	return failed, lines.Err()
}
