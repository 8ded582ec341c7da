// Command prepare builds or finds the API servers that the suites run on, and says
// so, before the tests do: go test would keep what they say to itself.
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
