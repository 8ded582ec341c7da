// Command mutants breaks the library on purpose, one way at a time, and shows which
// test notices. It prints a line for each mutant with the first test that kills it,
// and says so if that test had to be ended by the timeout. It fails if a mutant survives,
// does not compile or no longer fits the source.
//
//	go run ./test/mutants [part of a mutant's name, package or function …]
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

// table has the mutants of a package that one package's tests should notice.
type table struct {
	dir     string // the package's, below the module's root
	tests   string
	mutants []mutant
}

// mutant is one way to break the library.
type mutant struct {
	name   string
	decl   string // what it changes: "function", "Type.Method", or the name of another declaration
	change change
}

// tables are the ways to break the library that its tests have to notice. What a mutant
// changes must be in its package, once; a change of the code may have to change it.
var tables = slices.Concat(ofDynamicinformer, ofSource, ofTypestate, ofHandlers, ofStatus, ofDiscovery, ofWire)

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
		return errors.New("no mutant has such a name")
	case survived > 0:
		return fmt.Errorf("%d survived", survived)
	}
	return nil
}

func wanted(name string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(name, part) })
}

// try returns the tests that fail with m; nil if all pass.
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

// writeOverlay writes the mutated file and the overlay that puts it in place, and returns
// the path of the latter.
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
