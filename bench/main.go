// Command bench compares gvrkit's cache with client-go's and controller-runtime's,
// side by side, and writes a table, the single figures and plots of them.
//
// Every run of every system is a process of its own, and so is the server. The
// systems take turns, so that what else the machine does hits all of them alike. The
// first round does not count; of the others the ratios to client-go of the same round
// are shown. After each measurement the whole cache is compared with what client-go
// decodes; a difference ends the benchmark.
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

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/bench/child"
	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/servers"
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
	case measure.Role:
		ctrllog.SetLogger(logr.Discard()) // it complains otherwise
		err = measure.RunProcess(ctx)
	case servers.StubRole:
		err = servers.RunStub(ctx)
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	fmt.Fprintln(stderr, "bench:", err)
	return 1
}
