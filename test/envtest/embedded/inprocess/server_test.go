package inprocess_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/inprocess"
)

// TestMain ignores two goroutines of the API server that can't be ended
// (kubernetes/kubernetes#108483): one per process, which logs /healthz for ever, and a timer of
// the watch cache, which ends by itself.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"),
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func start(t *testing.T) *inprocess.Server {
	t.Helper()
	return startWith(t, inprocess.Options{})
}

func startWith(t *testing.T, opts inprocess.Options) *inprocess.Server {
	t.Helper()
	server, err := inprocess.Start(t.Context(), opts)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return server
}

// httpClient returns a client whose idle connections are closed at the end of the test.
func httpClient(t *testing.T, cfg *rest.Config) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func listCRDs(t *testing.T, cfg *rest.Config) error {
	t.Helper()
	client, err := dynamic.NewForConfigAndClient(cfg, httpClient(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Resource(crds).List(t.Context(), metav1.ListOptions{})
	return err
}

// tempDir is t.TempDir with a short path: a server uses the directory for temporary files
// only if the path of its socket is short enough.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gvrkit-") //nolint:usetesting // t.TempDir has the test's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestServer_RequiresItsToken(t *testing.T) {
	server := start(t)
	if err := listCRDs(t, server.Config()); err != nil {
		t.Errorf("list: %v", err)
	}
	for name, token := range map[string]string{"no token": "", "another token": "guessed"} {
		stranger := server.Config()
		stranger.BearerToken = token
		client := httpClient(t, stranger)
		for _, request := range []string{
			"GET /", "GET /apis", "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions", "GET /openapi/v2", "GET /metrics",
			"GET /healthz", "GET /livez", "GET /readyz", "GET /version",
			"POST " + inprocess.ResetPath, "GET " + inprocess.BackupPath, "PUT " + inprocess.BackupPath,
		} {
			method, path, _ := strings.Cut(request, " ")
			if code := status(t, client, method, stranger.Host+path); code != http.StatusUnauthorized {
				t.Errorf("%s with %s: status %d, want 401", request, name, code)
			}
		}
	}
}

func status(t *testing.T, client *http.Client, method, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

func TestServer_StopRemovesTemporaryFiles(t *testing.T) {
	tmp := tempDir(t)
	t.Setenv("TMPDIR", tmp)
	server := start(t)
	if err := server.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	select {
	case <-server.Done():
	default:
		t.Error("Done is open after Stop")
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func TestServer_DiscoveryInBothFormats(t *testing.T) {
	server := start(t)
	client, err := discovery.NewDiscoveryClientForConfigAndClient(server.Config(), httpClient(t, server.Config()))
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]discovery.DiscoveryInterface{"aggregated": client, "legacy": client.WithLegacy()} {
		groups, lists, err := d.ServerGroupsAndResources()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(groups) != 1 || groups[0].Name != crds.Group || len(lists) != 1 {
			t.Errorf("%s: groups %v, resources of %d versions", name, groups, len(lists))
		}
	}
}

func TestServer_TwoServersInOneProcess(t *testing.T) {
	a, b := start(t), start(t)
	for _, server := range []*inprocess.Server{a, b} {
		if err := listCRDs(t, server.Config()); err != nil {
			t.Errorf("list: %v", err)
		}
	}
}

// The context ends at several moments: while etcd starts, and while the API server starts.
func TestStart_EndsWithItsContextAndRemovesTemporaryFiles(t *testing.T) {
	for _, after := range []time.Duration{50, 150, 250, 350, 450} {
		tmp := tempDir(t)
		t.Setenv("TMPDIR", tmp)
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		server, err := inprocess.Start(ctx, inprocess.Options{})
		cancel()
		switch {
		case err == nil: // the server was ready in time
			if err := server.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("after %d ms: %v", after, err)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("after %d ms temporary files left: %v, %v", after, left, err)
		}
	}
}

func TestStart_AnUnknownFeatureGateDoesNotAffectLaterStarts(t *testing.T) {
	_, err := inprocess.Start(t.Context(), inprocess.Options{FeatureGates: map[string]bool{"NoSuchGate": true}})
	if err == nil || !strings.Contains(err.Error(), "NoSuchGate") {
		t.Errorf("Start: %v", err)
	}
	start(t) // in the same process, with the same gates
}
