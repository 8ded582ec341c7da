// Command discovery compares how gvrkit's resolver, client-go's mapper on its cache and
// controller-runtime's mapper learn what a server serves: how they start, what an answer
// costs, and when they notice a type that comes. It writes a table, and the single
// figures.
//
// Every run of every system is a process of its own, and so are the servers, one
// without CustomResourceDefinitions and one with many. The systems take turns. The first
// round does not count; of the others the ratios within the same round are shown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/trial"
)

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program runs the command, or what it is a child process for, and returns its exit
// code: 0, 1 if something failed, 2 if the command line is wrong.
func program(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch role := child.Role(); role {
	case "":
		err = bench(ctx, args, stdout, stderr)
	case cluster.Role:
		err = cluster.RunProcess(ctx)
	case trial.Role:
		err = trial.RunProcess(ctx)
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "discovery:", err)
		return 2
	}
	fmt.Fprintln(stderr, "discovery:", err)
	return 1
}
