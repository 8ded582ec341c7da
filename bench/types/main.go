// Command types measures how programs start that watch few or many types of a server with
// many CustomResourceDefinitions: client-go's, and gvrkit's with discovery and without. It
// writes a table, and the single figures.
//
// Every run of every system is a process of its own, and so are the servers. The systems
// take turns. The first round does not count; of the others the ratios within the same
// round are shown.
package main

import (
	"context"
	"io"
	"os"

	"github.com/gvrkit/gvrkit/bench/launch"
	"github.com/gvrkit/gvrkit/bench/types/trial"
)

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program runs the command, or what it is a child process for, and returns its exit code.
func program(args []string, stdout, stderr io.Writer) int {
	return launch.Run(context.Background(), "types", stderr, launch.Roles{
		"":         func(ctx context.Context) error { return bench(ctx, args, stdout, stderr) },
		trial.Role: trial.RunProcess,
	})
}
