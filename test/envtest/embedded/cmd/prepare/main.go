// Command prepare builds the API server that package embedded launches, so that the
// tests that need it find it there. It does nothing if it has been built before.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := embedded.Prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}
