// Command apiserver is the server process that package embedded launches: it
// runs package inprocess, writes where to reach it as one line of JSON on
// standard output, and ends when standard input is closed, so that it can't
// outlive its parent. Logs go to standard error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/inprocess"
)

// connection is the line on standard output; the launcher has the same struct.
type connection struct {
	Host   string `json:"host"`
	Token  string `json:"token"`
	CAData []byte `json:"caData"`
	Name   string `json:"serverName"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	var (
		dataDir   = flag.String("data-dir", "", "directory of etcd's files; empty: a temporary one")
		removeDir = flag.Bool("remove-data-dir", false, "remove the data directory at the end")
		gates     = map[string]bool{}
	)
	flag.Var(cliflag.NewMapStringBool(&gates), "feature-gates", "k8s.io/apiserver feature gates: Name=true,Name=false")
	flag.Parse()
	if *removeDir && *dataDir != "" {
		defer func() {
			if rmErr := os.RemoveAll(*dataDir); err == nil {
				err = rmErr
			}
		}()
	}

	// A terminal's Ctrl-C goes to the whole process group. It is the parent's
	// to decide what it means; the end of standard input tells us. Nor may a log
	// line that nobody reads any more end us before the data is removed.
	signal.Ignore(os.Interrupt, syscall.SIGPIPE)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // end of file or broken pipe: the parent is gone
		cancel()
	}()

	server, err := inprocess.Start(ctx, inprocess.Options{DataDir: *dataDir, FeatureGates: gates})
	if err != nil {
		return err
	}
	cfg := server.Config()
	ready := connection{Host: cfg.Host, Token: cfg.BearerToken, CAData: cfg.CAData, Name: cfg.ServerName}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		cancel() // nobody reads: nothing to serve
	}
	select {
	case <-ctx.Done():
	case <-server.Done():
	}
	return server.Stop()
}
