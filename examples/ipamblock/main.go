// Command ipamblock watches Calico's IPAMBlocks with gvrkit and prints their events. Without flags
// it needs no cluster: it starts an API server, writes to it, and ends.
//
// On a real cluster, it needs list and watch for the resource, and with --demo-writes also get, create, update and delete for
// ipamblocks.crd.projectcalico.org.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program runs the command and returns its exit code: 0, 1 if something failed,
// 2 if the command line is wrong.
func program(args []string, stdout, stderr io.Writer) int {
	// No log: the error of this program has the reason.
	klog.SetLogger(logr.Discard())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := parse(args, stdout)
	if err == nil {
		err = run(ctx, s, stdout, stderr)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "ipamblock:", err)
		return 2
	}
	fmt.Fprintln(stderr, "ipamblock:", strings.ReplaceAll(err.Error(), "\n", "; "))
	return 1
}
