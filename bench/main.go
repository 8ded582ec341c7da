// Command bench compares gvrkit with client-go and controller-runtime.
//
//	go run ./bench [flags] [scenario ...]
//
// The scenarios are cache, discovery, leases, manager, sharding and types; without an argument all of them run.
// Package harness describes the measurement. The command prints a table for each case; with -out
// it also writes the figures of each run as JSON, and charts.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/gvrkit/gvrkit/bench/cache"
	"github.com/gvrkit/gvrkit/bench/discovery"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/leases"
	"github.com/gvrkit/gvrkit/bench/manager"
	"github.com/gvrkit/gvrkit/bench/process"
	"github.com/gvrkit/gvrkit/bench/sharding"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/types"
)

// errUsage marks errors in the command line.
var errUsage = errors.New("see -help")

func scenarios() []harness.Scenario {
	return []harness.Scenario{cache.Scenario(), discovery.Scenario(), leases.Scenario(), manager.Scenario(), sharding.Scenario(), types.Scenario()}
}

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program runs the role of this process. It returns the exit code: 0, 1 after a failure, or 2 if
// the command line is wrong.
func program(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch role := process.Role(); role {
	case "":
		err = bench(ctx, args, stdout, stderr)
	case harness.Role:
		err = harness.RunProcess(ctx, scenarios())
	case stub.Role:
		err = stub.RunProcess(ctx)
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(stderr, "bench: %v\n", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// bench measures the scenarios of the command line.
func bench(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	chosen, options := scenarios(), harness.Options{Progress: stderr}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&options.Quick, "quick", false, "measure smaller cases in fewer rounds")
	flags.UintVar(&options.Rounds, "rounds", 0, "number of `rounds` that count, after a warm-up round (default 3 or 5)")
	out := flags.String("out", "", "`directory` for results and charts")
	flags.Func("cases", "measure only cases whose names match this regular `expression`, such as mix or back", func(text string) (err error) {
		options.Cases, err = regexp.Compile(text)
		return err
	})
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "go run ./bench [flags] [scenario ...]")
		for _, scenario := range chosen {
			fmt.Fprintf(stdout, "  %s: %s\n", scenario.Name, scenario.About)
		}
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return err
	}
	for i, name := range flags.Args() {
		scenario, unknown := harness.Find(scenarios(), name, func(s harness.Scenario) string { return s.Name })
		chosen, err = append(chosen[:i:i], scenario), errors.Join(err, unknown)
	}
	if err != nil {
		return fmt.Errorf("%s; %w", strings.ReplaceAll(err.Error(), "\n", "; "), errUsage)
	}
	for _, scenario := range chosen {
		results, err := harness.Run(ctx, scenario, options)
		if err := errors.Join(err, results.WriteTable(stdout), results.Save(*out)); err != nil {
			return err
		}
	}
	return nil
}
