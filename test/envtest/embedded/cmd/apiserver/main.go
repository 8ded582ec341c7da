// Command apiserver is the server process that package embedded starts. It runs package
// inprocess and writes its connection as one line of JSON to standard output. It ends
// when standard input closes, so that it can't outlive its parent. Logs go to standard
// error.
package main

import (
	"context"
	"encoding/json"
	"errors"
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
		dataDir = flag.String("data-dir", "", "directory of etcd's files; empty: one in the temporary directory")
		tempDir = flag.String("temp-dir", "", "directory of mode 0700 for files of the running server, removed at the end; empty: a new one")
		gates   = map[string]bool{}
	)
	flag.Var(cliflag.NewMapStringBool(&gates), "feature-gates", "k8s.io/apiserver feature gates: Name=true,Name=false")
	flag.Parse()
	if *tempDir != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(*tempDir)) }()
	}

	// Ctrl-C in a terminal sends a signal to the whole process group. This process ignores
	// it, and ends when the parent closes standard input. It also ignores that no process
	// reads its log, so that the temporary directory is removed at the end.
	signal.Ignore(os.Interrupt, syscall.SIGPIPE)
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
	}()

	server, err := inprocess.Start(ctx, inprocess.Options{DataDir: *dataDir, TempDir: *tempDir, FeatureGates: gates})
	if err != nil {
		return err
	}
	cfg := server.Config()
	ready := connection{Host: cfg.Host, Token: cfg.BearerToken, CAData: cfg.CAData, Name: cfg.ServerName}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		cancel() // the parent has ended
	}
	select {
	case <-ctx.Done():
	case <-server.Done():
	}
	return server.Stop()
}
