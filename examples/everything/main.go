// Command everything watches all types of a cluster and all their objects, and prints their events,
// like "kubectl get -w" for all types. Without --all, it watches types with CustomResourceDefinitions.
//
// It needs list and watch for the types: a type that it may not list or watch has a line with the reason. Without --all, and
// with --crd-selector, it also needs get, list and watch for CustomResourceDefinitions.
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

	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := program(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// program runs the command until ctx ends and returns its exit code: 0, 1 if something
// failed, 2 if the command line is wrong.
func program(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	klog.SetLogger(klog.Logger{}) // no log: the lines of states have the errors
	s, err := parse(args, stdout)
	if err == nil {
		err = run(ctx, s, stdout)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "everything:", err)
		return 2
	}
	fmt.Fprintln(stderr, "everything:", strings.ReplaceAll(err.Error(), "\n", "; "))
	return 1
}
