// Command mutants tests the tests: it changes the library in one way after another, and runs the
// tests. It prints a line for each mutant with the first test that fails and, for a test of the churn
// model, the first violation. It fails if a mutant survives, which means that no test fails. A test
// that runs into the time limit has not failed.
//
//	go run ./test/mutants [part of a mutant's name, package or function …]
//
// All mutants whose tests are in one package are compiled together, into one test program: each
// function has its mutated bodies beside its own (schemata.go). The program runs once without a
// mutant, and once for each mutant, which an environment variable selects. Mutants are compiled with
// the overlay of the go command, and no file of the source is written.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
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
	fn     string // the changed function: "function" or "Type.Method"
	change change
}

// tables has all mutants. The code that a mutant changes must occur once in its function, so a change
// of the library may require a change of a mutant.
var tables = slices.Concat(ofDynamicinformer, ofSource, ofTypestate, ofHandlers, ofStatus, ofDiscovery, ofNarrowRuns, ofWire, ofPacked, ofControllerRuntime, ofCases, ofChurn, ofSoak, ofSharding, ofShard)

// selection has mutants by the directory of their tests, and by their own directory.
type selection map[string]map[string][]mutant

// selected returns the mutants whose name, package and function contain all parts.
func selected(parts []string) selection {
	s := selection{}
	for _, t := range tables {
		for _, m := range t.mutants {
			name := m.name + " " + t.dir + "." + m.fn
			if slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(name, part) }) {
				continue
			}
			if s[t.tests] == nil {
				s[t.tests] = map[string][]mutant{}
			}
			s[t.tests][t.dir] = append(s[t.tests][t.dir], m)
		}
	}
	return s
}

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
	all := selected(parts)
	if len(all) == 0 {
		return errors.New("no mutant matches")
	}
	for _, tests := range slices.Sorted(maps.Keys(all)) {
		mutants := slices.Concat(slices.Collect(maps.Values(all[tests]))...)
		fmt.Printf("%s: compiling the tests with %d mutants\n", tests, len(mutants))
		p, err := compile(ctx, scratch, tests, all[tests])
		if err != nil {
			return fmt.Errorf("%s: %w", tests, err)
		}
		fmt.Printf("%s: without a mutant, the tests pass in %v\n", tests, p.duration.Round(100*time.Millisecond))
		for r := range p.runAll(ctx, mutants) {
			tried++
			switch {
			case r.err != nil:
				err = fmt.Errorf("%s: %w", r.name, r.err)
			case r.timedOut != "":
				survived++
				fmt.Printf("SURVIVED %s (%s): %s timed out\n", r.name, r.fn, r.timedOut)
			case r.killer == "":
				survived++
				fmt.Printf("SURVIVED %s (%s)\n", r.name, r.fn)
			default:
				fmt.Printf("killed   %s: %s\n", r.name, r.killer)
			}
		}
		if err != nil {
			return err
		}
	}
	fmt.Printf("%d mutants, %d killed in %v\n", tried, tried-survived, time.Since(begun).Round(time.Second))
	if survived > 0 {
		return fmt.Errorf("%d survived", survived)
	}
	return nil
}
