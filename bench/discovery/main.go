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
	"io"
	"os"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/trial"
	"github.com/gvrkit/gvrkit/bench/launch"
)

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program runs the command, or what it is a child process for, and returns its exit code.
func program(args []string, stdout, stderr io.Writer) int {
	return launch.Run(context.Background(), "discovery", stderr, launch.Roles{
		"":           func(ctx context.Context) error { return bench(ctx, args, stdout, stderr) },
		cluster.Role: cluster.RunProcess,
		trial.Role:   trial.RunProcess,
	})
}
