// Package launch is what the benchmark programs have in common: how they begin and
// end, in which role, and where they keep their results.
package launch

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
)

// ErrUsage is matched by errors about the command line.
var ErrUsage = errors.New("see -help")

// Roles are what the processes of a program do, by role. The empty one is that of the
// process that a person starts.
type Roles map[string]func(ctx context.Context) error

// Run does what this process's role is, until it is done or interrupted, and returns the
// program's exit code: 0, 1 if something failed, 2 if the command line is wrong. What went
// wrong is told to stderr, after name.
func Run(ctx context.Context, name string, stderr io.Writer, roles Roles) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	do, known := roles[child.Role()]
	err := fmt.Errorf("unknown role %q", child.Role())
	if known {
		err = do(ctx)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 2
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	return 1
}

// Results is the directory where results are kept, seen from the repository, from the
// module or from a program in it.
func Results() string {
	switch {
	case exists("bench/go.mod"):
		return "bench/results"
	case exists("go.mod"):
		return "results"
	}
	return "../results"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
