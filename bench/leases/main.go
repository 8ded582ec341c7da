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
	"io"
	"os"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/launch"
	"github.com/gvrkit/gvrkit/bench/leases/trial"
)

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program runs the command, or what it is a child process for, and returns its exit code.
func program(args []string, stdout, stderr io.Writer) int {
	return launch.Run(context.Background(), "leases", stderr, launch.Roles{
		"":           func(ctx context.Context) error { return bench(ctx, args, stdout, stderr) },
		cluster.Role: cluster.RunProcess,
		trial.Role:   trial.RunProcess,
	})
}
