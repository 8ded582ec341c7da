// Command sharded shows processes that share the objects of a type. It starts an API server with the feature ShardedListAndWatch, and
// processes that join a group and watch IPAMBlocks, and shows which slots and how many objects each of them has. Kill one of them: the
// others take its slots over when its Lease has expired.
//
//	go run ./examples/sharded --replicas 3
//
// It needs no cluster. Each process is this program again, as "sharded member".
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
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	klog.SetLogger(logr.Discard()) // the table has the reasons
	if len(os.Args) > 1 && os.Args[1] == memberCommand {
		os.Exit(exitCode(os.Stderr, memberProcess(context.Background(), os.Stdin, os.Stdout)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exitCode(os.Stderr, program(ctx, os.Args[1:], os.Stdout)))
}

// exitCode prints err.
func exitCode(to io.Writer, err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(to, "sharded:", err)
	return 1
}

// settings are the command line.
type settings struct {
	replicas, objects int
	duration          time.Duration
}

// program runs the command until ctx or the duration ends, or no process is left.
func program(ctx context.Context, args []string, out *os.File) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if s.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.duration)
		defer cancel()
	}
	fmt.Fprintln(out, "starting an API server on this machine; the first time takes some minutes to build it")
	info, err := out.Stat()
	if err != nil {
		return err
	}
	show := newPlain(out).show
	if info.Mode()&os.ModeCharDevice != 0 {
		show = newTable(out).show
	}
	return demonstrate(ctx, s, show)
}

func parse(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("sharded", flag.ContinueOnError)
	flags.IntVar(&s.replicas, "replicas", 3, "number of processes")
	flags.IntVar(&s.objects, "objects", 1000, "number of IPAMBlocks")
	flags.DurationVar(&s.duration, "duration", 0, "end after this time; by default with Ctrl-C")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 || s.replicas < 1 || s.objects < 1 || s.duration < 0 {
		return s, errors.New("--replicas and --objects must be positive, --duration must not be negative, and there are no arguments")
	}
	return s, nil
}
