// Command leases measures informers on types that are not there, that go and that come
// back, and what a lease costs: gvrkit's, client-go's, and those that are stopped and
// started by hand with client-go. It writes a table, and the single figures.
//
// Every run of every system is a process of its own, and so are the servers. The systems
// take turns. The first round, which is a short one, does not count; of the others the
// ratios within the same round are shown.
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
	"github.com/gvrkit/gvrkit/bench/leases/trial"
)

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program runs the command, or what it is a child process for, and returns its exit
// code: 0, 1 if something failed, 2 if the command line is wrong.
func program(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := 1
	err := run(ctx, child.Role(), args, stdout, stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if errors.Is(err, errUsage) {
		code = 2
	}
	fmt.Fprintln(stderr, "leases:", err)
	return code
}

// run does what a process in that role does.
func run(ctx context.Context, role string, args []string, stdout, stderr io.Writer) error {
	switch role {
	case "":
		return bench(ctx, args, stdout, stderr)
	case cluster.Role:
		return cluster.RunProcess(ctx)
	case trial.Role:
		return trial.RunProcess(ctx)
	}
	return fmt.Errorf("unknown role %q", role)
}
