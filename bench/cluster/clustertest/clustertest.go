// Package clustertest starts API servers for tests of scenarios.
package clustertest

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
)

// Start starts an embedded server, which runs until the end of the test.
func Start(t *testing.T, server cluster.Server) cluster.Connection {
	t.Helper()
	server.Name = cluster.Embedded
	connection, stop, err := server.Start(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return connection.(cluster.Connection)
}

// Job returns a job for a server with this connection.
func Job(t *testing.T, connection any) harness.Job {
	t.Helper()
	text, err := json.Marshal(connection)
	if err != nil {
		t.Fatal(err)
	}
	return harness.Job{Connection: text}
}
