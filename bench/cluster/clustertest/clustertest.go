// Package clustertest starts API servers for tests of scenarios.
package clustertest

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
)

// Start starts an embedded server with [cluster.Start] or [cluster.StartPlain]. The server runs
// until the end of the test.
func Start(t *testing.T, start func(context.Context, string, io.Writer, cluster.Size) (*harness.Servers, error), size cluster.Size) cluster.Connection {
	t.Helper()
	servers, err := start(t.Context(), cluster.Embedded, io.Discard, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Stop(); err != nil {
			t.Error(err)
		}
	})
	return servers.Connection.(cluster.Connection)
}

// Job returns a job for servers with this connection.
func Job(t *testing.T, connection any) harness.Job {
	t.Helper()
	text, err := json.Marshal(connection)
	if err != nil {
		t.Fatal(err)
	}
	return harness.Job{Connection: text}
}
