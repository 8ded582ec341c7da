// Command mutants breaks the library on purpose, one way at a time, and shows which
// test notices. It prints a line for each mutant with the first test that kills it,
// and says so if that test had to be ended by the timeout. It fails if a mutant survives,
// does not compile or no longer fits the source.
//
//	go run ./test/mutants [part of a name or file …]
//
// Mutants are applied through go's overlay: the source is never written to.
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

// mutant is one way to break the library.
type mutant struct {
	name string
	file string // below the module's root
	old  string // exactly once in file
	new  string
	in   string // the package whose tests should notice; the file's own if empty
}

// mutants are the ways to break the library that its tests have to notice. A change
// of the code changes its mutants: what they replace must be there, once.
var mutants = slices.Concat(ofFactory, ofSource, ofLives, ofLeases, ofFollow, ofStatus, ofLister, ofDiscovery, ofDiscoveryLive, ofMetrics, ofWire, ofPage)

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
	defer func() { _ = os.RemoveAll(scratch) }() // it is the system's temporary directory
	begun, tried, survived := time.Now(), 0, 0
	for _, m := range mutants {
		if !wanted(m, parts) {
			continue
		}
		tried++
		killers, err := try(ctx, scratch, m)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", m.name, err)
		case killers == nil:
			survived++
			fmt.Printf("SURVIVED %s (%s)\n", m.name, m.file)
		default:
			fmt.Printf("killed   %s: %s\n", m.name, strings.Join(killers[:min(2, len(killers))], ", "))
		}
	}
	fmt.Printf("%d mutants, %d killed in %v\n", tried, tried-survived, time.Since(begun).Round(time.Second))
	switch {
	case tried == 0:
		return errors.New("no mutant has such a name")
	case survived > 0:
		return fmt.Errorf("%d survived", survived)
	}
	return nil
}

func wanted(m mutant, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(m.name, part) && !strings.Contains(m.file, part) {
			return false
		}
	}
	return true
}

// try returns the tests that fail with m; nil if all pass.
func try(ctx context.Context, scratch string, m mutant) ([]string, error) {
	overlay, err := apply(scratch, m)
	if err != nil {
		return nil, err
	}
	pkg := "./" + filepath.Dir(m.file)
	if m.in != "" {
		pkg = "./" + m.in
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-vet=off", "-failfast", "-timeout=60s", "-overlay", overlay, pkg)
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

// apply writes the mutated file and the overlay that puts it in place, and returns
// the path of the latter.
func apply(scratch string, m mutant) (string, error) {
	content, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(content), m.old); n != 1 {
		return "", fmt.Errorf("%s has what it replaces %d times, want once", m.file, n)
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(scratch, "mutated.go")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(content), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(scratch, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

// failures reads the output of go test -json. If the process died, the tests that
// were running count. A build that failed is an error: such a mutant shows nothing.
func failures(output []byte) ([]string, error) {
	var said strings.Builder
	var failed []string
	running := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, len(output)+1)
	for lines.Scan() {
		var event struct{ Action, Test, Output, FailedBuild string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // what go prints beside its events
		}
		switch {
		case event.Action == "build-output":
			said.WriteString(event.Output)
		case event.FailedBuild != "":
			return nil, fmt.Errorf("it does not compile:\n%s", said.String())
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
		failed = []string{"the package's end"} // goleak
	}
	if bytes.Contains(output, []byte("panic: test timed out after")) {
		failed[0] += " (timed out)"
	}
	return failed, lines.Err()
}
