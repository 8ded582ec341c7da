// Command everything prints the life of every type of a cluster and of all its objects, as
// "kubectl get everything -w" would if there were such a thing: with no selection, that of
// the types that CustomResourceDefinitions define.
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
	klog.SetLogger(klog.Logger{}) // silent: what client-go would log is in the lines of states
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
