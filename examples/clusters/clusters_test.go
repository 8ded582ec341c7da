package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The cluster that stays sees nothing of the other one, whose old objects are not added again.
func TestDemonstration_AClusterThatStopsAffectsOnlyItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	got := map[string][]string{} // the race detector finds concurrent calls
	if err := demonstrate(ctx, func(cluster, text string) {
		t.Log(cluster, text)
		got[cluster] = append(got[cluster], text)
	}); err != nil {
		t.Fatal(err)
	}
	events := func(cluster string) (events []string) {
		for _, text := range got[cluster] {
			if text[0] >= 'a' {
				events = append(events, text)
			}
		}
		return events
	}
	if want := []string{"added anna", "added cora"}; !slices.Equal(events("east"), want) {
		t.Errorf("events of east: %q, want %q", events("east"), want)
	}
	if want := []string{"added bora", "added dora"}; !slices.Equal(events("west"), want) {
		t.Errorf("events of west: %q, want %q", events("west"), want)
	}
	isDegraded := func(text string) bool { return strings.HasPrefix(text, "Degraded") }
	if slices.ContainsFunc(got["east"], isDegraded) {
		t.Errorf("east: %q", got["east"])
	}
	failed := slices.IndexFunc(got["west"], isDegraded)
	if failed < 0 || !slices.Contains(got["west"][failed:], "Synced") {
		t.Errorf("west: %q", got["west"])
	}
}

func TestDemonstration_EndsIfAServerDoesNotStart(t *testing.T) {
	for _, at := range []string{"starting two API servers", "west starts again"} {
		t.Run(at, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			err := demonstrate(ctx, func(_, text string) {
				if strings.HasPrefix(text, at) {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error: %v", err)
			}
			if left, err := os.ReadDir(temp); len(left) > 0 || err != nil {
				t.Errorf("temporary files are left: %v, %v", left, err)
			}
		})
	}
}

func TestDemonstration_EndsWithTheErrorOfItsWatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := whileWatching(ctx, map[string]*rest.Config{"west": {Host: "%"}}, func(string, string) {}, func(await func(...string) error) error {
		return await("west added bora")
	})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "cluster west: ") || !errors.Is(err, errWatchEnded) {
		t.Errorf("error: %v", err)
	}
}

// silentServer returns the address of a server that never responds. It calls asked with each request.
func silentServer(t *testing.T, asked func()) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestWatch_TheEndOfItsContextIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := silentServer(t, cancel)
	if err := watch(ctx, map[string]*rest.Config{"east": {Host: address}}, ships, func(string, string) {}); err != nil {
		t.Error(err)
	}
}

func TestWatch_ReturnsOnlyTheErrorOfTheClusterThatFails(t *testing.T) {
	address := silentServer(t, func() {})
	err := watch(t.Context(), map[string]*rest.Config{"east": {Host: address}, "west": {Host: "%"}}, ships, func(string, string) {})
	if err == nil || !strings.Contains(err.Error(), "cluster west: ") || strings.Contains(err.Error(), "cluster east: ") {
		t.Errorf("error: %v", err)
	}
}

func TestProgram_RefusesAWrongCommandLine(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: "http://127.0.0.1:1"}},
		Contexts:       map[string]*clientcmdapi.Context{"a": {Cluster: "c"}},
		CurrentContext: "a",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--kubeconfig", kubeconfig, "--resource", "ships.v1.example.com"},
		{"--kubeconfig", kubeconfig, "--contexts", "a,", "--resource", "ships.v1.example.com"},
		{"--kubeconfig", "/nowhere", "--contexts", "a", "--resource", "ships"},
		{"--kubeconfig", "/nowhere", "--contexts", "a", "--resource", "ships.v1.example.com"},
		{"--nonsense"},
		{"--contexts", "a"},
		{"--resource", "ships.v1.example.com"},
		{"--kubeconfig", ""},
		{"more"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // a demonstration would end at once
		var out bytes.Buffer
		if err := program(ctx, args, &out); err == nil || out.Len() > 0 {
			t.Errorf("%q: error %v, output %q", args, err, &out)
		}
	}
}
