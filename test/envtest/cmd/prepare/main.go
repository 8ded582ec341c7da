// Command prepare finds or builds the API servers of the suites before the tests, and prints its
// progress, which go test would not print.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/gvrkit/gvrkit/test/envtest/controlplane"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

func main() {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func prepare() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	_, err := controlplane.Assets(ctx, os.Stderr)
	return errors.Join(embedded.Prepare(ctx), err)
}
