package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func start(t *testing.T, opts ...embedded.Option) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(t.Context(), opts...)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { stop(t, server) })
	return server
}

func stop(t *testing.T, server *embedded.Server) {
	t.Helper()
	if err := server.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
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

func client(t *testing.T, cfg *rest.Config) dynamic.NamespaceableResourceInterface {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if idle, ok := transport.(interface{ CloseIdleConnections() }); ok {
		t.Cleanup(idle.CloseIdleConnections)
	}
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c.Resource(widgets)
}

func crd(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join("testdata", "widgets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func widget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"size": int64(1)},
	}}
}

// refused reports whether a connection to host fails.
func refused(t *testing.T, host string) bool {
	t.Helper()
	to, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", to.Host)
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}

func TestServer_KeepsItsDataDirectoryAndRemovesTemporaryFiles(t *testing.T) {
	data, tmp := t.TempDir(), tempDir(t)
	t.Setenv("TMPDIR", tmp)

	first := start(t, embedded.WithDataDir(data))
	if err := first.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatalf("InstallCRDs: %v", err)
	}
	// An installed type can be listed without a retry.
	if _, err := client(t, first.Config()).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list right after InstallCRDs: %v", err)
	}
	if _, err := client(t, first.Config()).Namespace("ns").Create(t.Context(), widget("a"), metav1.CreateOptions{}); err != nil {
		t.Errorf("create: %v", err)
	}
	stop(t, first)
	if !refused(t, first.Config().Host) {
		t.Error("the port is open after Stop")
	}

	second := start(t, embedded.WithDataDir(data))
	if err := second.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Errorf("InstallCRDs of an installed CRD: %v", err)
	}
	if _, err := client(t, second.Config()).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("the object of the first server: %v", err)
	}
	stop(t, second)

	temporary := start(t)
	stop(t, temporary)
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func TestServer_RequiresItsToken(t *testing.T) {
	server := start(t)
	cfg := server.Config()
	cfg.BearerToken = ""
	if _, err := client(t, cfg).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a token: %v, want Unauthorized", err)
	}
	if got := server.Config(); !strings.HasPrefix(got.Host, "https://127.0.0.1:") || got.BearerToken == "" {
		t.Errorf("Config: host %q, token %q", got.Host, got.BearerToken)
	}
}

func TestServer_TwoServersAreIndependent(t *testing.T) {
	servers := make([]*embedded.Server, 2)
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() { servers[i] = start(t) })
	}
	wg.Wait()
	if err := servers[0].InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, servers[1].Config()).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other server serves the CRD too: %v", err)
	}
}

func TestServer_FeatureGatesAndLog(t *testing.T) {
	var log bytes.Buffer // written by one goroutine, read after Stop
	server := start(t, embedded.WithLog(&log), embedded.WithFeatureGates(map[string]bool{"WatchList": false}))
	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	initial := true
	_, err := client(t, server.Config()).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if !apierrors.IsInvalid(err) {
		t.Errorf("watch-list with its gate off: %v, want Invalid", err)
	}
	stop(t, server)
	if log.Len() == 0 {
		t.Error("no log lines")
	}
}

func TestServer_SecondServerOnADataDirectoryFailsAtOnce(t *testing.T) {
	data := t.TempDir()
	start(t, embedded.WithDataDir(data))
	if _, err := embedded.Start(t.Context(), embedded.WithDataDir(data)); err == nil || !strings.Contains(err.Error(), data) {
		t.Errorf("Start: %v", err)
	}
}

// fullDisk is a writer that fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestServer_IgnoresErrorsOfTheLog(t *testing.T) {
	stop(t, start(t, embedded.WithLog(fullDisk{})))
}

func TestServer_AnUnknownFeatureGateIsAnErrorThatNamesIt(t *testing.T) {
	_, err := embedded.Start(t.Context(), embedded.WithFeatureGates(map[string]bool{"NoSuchGate": true}))
	if err == nil || !strings.Contains(err.Error(), "NoSuchGate") {
		t.Errorf("Start: %v", err)
	}
}

func TestServer_StartEndsWithItsContext(t *testing.T) {
	start(t) // builds the binary, so that the context ends the start and not the build
	tmp := tempDir(t)
	t.Setenv("TMPDIR", tmp)
	for _, after := range []time.Duration{50, 150, 250, 350, 450} {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		server, err := embedded.Start(ctx)
		cancel()
		switch {
		case err == nil: // the server was ready in time
			stop(t, server)
		case !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "failed"):
			t.Errorf("after %d ms: %v, want only DeadlineExceeded", after, err)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

func TestInstallCRDs_ErrorsHaveTheReason(t *testing.T) {
	server := start(t)
	if err := server.InstallCRDs(t.Context(), nil); err == nil {
		t.Error("nil CRD: no error")
	}
	bad := crd(t)
	unstructured.RemoveNestedField(bad.Object, "spec", "group")
	if err := server.InstallCRDs(t.Context(), bad); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "widgets.example.com") {
		t.Errorf("invalid CRD: %v", err)
	}
	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	taken := crd(t)
	taken.SetName("gadgets.example.com")
	names := map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "WidgetList"}
	if err := unstructured.SetNestedMap(taken.Object, names, "spec", "names"); err != nil {
		t.Fatal(err)
	}
	if err := server.InstallCRDs(t.Context(), taken); err == nil || !strings.Contains(err.Error(), "names not accepted") {
		t.Errorf("CRD with the kind of another CRD: %v", err)
	}
	names["kind"], names["listKind"] = "Gadget", "GadgetList"
	if err := unstructured.SetNestedMap(taken.Object, names, "spec", "names"); err != nil {
		t.Fatal(err)
	}
	if err := server.InstallCRDs(t.Context(), taken); err != nil {
		t.Errorf("with names of its own: %v", err)
	}
}

// A deletion ends after that of the objects.
func TestInstallCRDs_WaitsForTheEndOfADeletion(t *testing.T) {
	server := start(t)
	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	widgets, crds := client(t, server.Config()).Namespace("ns"), definitions(t, server.Config())
	create(t, widgets, "a") // its finalizer holds the CRD
	if err := crds.Delete(t.Context(), crd(t).GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	installed := make(chan error, 1)
	go func() { installed <- server.InstallCRDs(t.Context(), crd(t)) }()
	select {
	case err := <-installed:
		t.Fatalf("it returns during the deletion: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	for gone := false; !gone; { // the first deletion of the object may come after the patch, or before it
		_, err := widgets.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if gone = apierrors.IsNotFound(err); err != nil && !gone {
			t.Fatal(err)
		}
	}
	if err := <-installed; err != nil {
		t.Fatal(err)
	}
	if list, err := widgets.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("objects of the new type: %v, %v", list, err)
	}
	create(t, widgets, "b")
}

func TestServer_EndsWithItsParent(t *testing.T) {
	start(t) // builds the binary here if necessary, so that progress is printed
	tmp := tempDir(t)
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1", "TMPDIR="+tmp)
	if _, err := parent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	host, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the parent did not start a server: %v", err)
	}
	host = strings.TrimSpace(host)
	if refused(t, host) {
		t.Fatal("the server does not accept connections")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // its error is that it was killed

	gone := func() bool {
		left, err := os.ReadDir(tmp)
		return refused(t, host) && err == nil && len(left) == 0
	}
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(50 * time.Millisecond); !gone(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("a minute after the end of its parent, the server runs or has temporary files")
		}
	}
}

// A busy server has a new type in its discovery documents later than it serves it.
func TestInstallCRDs_WaitsForDiscovery(t *testing.T) {
	server := start(t)
	transport, err := rest.TransportFor(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultproxy.Start(server.Config().Host, transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	behind := &rest.Config{Host: proxy.URL(), QPS: -1}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var polls atomic.Int32
	proxy.Inject(faultproxy.Path("/apis"), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if polls.Add(1) == 2 { // it continues after the first documents, which do not have the type
				cancel()
			}
			next.ServeHTTP(w, r)
		})
	})
	catchUp := proxy.Inject(nil, faultproxy.StaleDiscovery())
	err = embedded.InstallCRDs(ctx, behind, crd(t))
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"/apis/example.com/v1/widgets"`) {
		t.Errorf("InstallCRDs: %v, want an error that names what the documents do not have", err)
	}
	catchUp()
	if err := embedded.InstallCRDs(t.Context(), behind, crd(t)); err != nil {
		t.Errorf("InstallCRDs: %v", err)
	}
}
