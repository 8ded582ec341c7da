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
	"io"
	"os"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/bench/launch"
	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/servers"
)

func main() { os.Exit(program(os.Args[1:], os.Stdout, os.Stderr)) }

// program runs the command, or what it is a child process for, and returns its exit code.
func program(args []string, stdout, stderr io.Writer) int {
	return launch.Run(context.Background(), "bench", stderr, launch.Roles{
		"": func(ctx context.Context) error { return bench(ctx, args, stdout, stderr) },
		measure.Role: func(ctx context.Context) error {
			ctrllog.SetLogger(logr.Discard()) // it complains otherwise
			return measure.RunProcess(ctx)
		},
		servers.StubRole: servers.RunStub,
	})
}
