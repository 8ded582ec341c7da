package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// programEnv makes the test binary run as the program.
const programEnv = "IPAMBLOCK_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// call runs the program as a child process, and returns its exit code and output.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), programEnv+"=1", "KUBECONFIG=", "HOME="+t.TempDir(), "XDG_CACHE_HOME="+cacheDir(t))
	return cmd
}

// cacheDir returns the directory with the built server, for a program with another home directory.
func cacheDir(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestProgram_DemonstratesWithoutACluster(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var kinds []string
	for line := range strings.Lines(stdout) {
		if kind, _, _ := strings.Cut(line, " "); slices.Contains([]string{"ADDED", "UPDATED", "DELETED"}, kind) {
			kinds = append(kinds, kind)
		}
	}
	want := slices.Concat(slices.Repeat([]string{"ADDED"}, 3), slices.Repeat([]string{"UPDATED"}, 8), []string{"DELETED"})
	if !slices.Equal(kinds, want) {
		t.Errorf("events: %q, want %q", kinds, want)
	}
	for _, part := range []string{
		"192.0.2.0/28         node-a            5/16   [###-------]  +1",
		"CIDR                 NODE           USED/SIZE\n192.0.2.0/28         node-a            3/16   [#---------]\n198.51.100.0/28      node-b           16/16   [##########]\n",
		"12 events: 3 added, 8 updated, 0 by resync, 1 deleted",
	} {
		if !strings.Contains(stdout, part) {
			t.Errorf("no %q in:\n%s", part, stdout)
		}
	}
	if !strings.Contains(stderr, "watching ipamblocks.v1.crd.projectcalico.org") {
		t.Errorf("progress: %s", stderr)
	}
}

// The informer continues when its CRD is deleted and created again.
func TestProgram_DeletesAndCreatesTheCRD(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, "--crd-churn")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var lines []string // after the demonstration
	state, throttled := "", false
	rest := stdout[strings.Index(stdout, "DELETED"):]
	for line := range strings.Lines(rest) {
		switch fields := strings.Fields(line); {
		case len(fields) > 1 && slices.Contains([]string{"ADDED", "UPDATED", "DELETED"}, fields[0]):
			lines = append(lines, fields[0]+" "+fields[1])
		case strings.Join(fields, " ") == "STATE Degraded Throttled":
			throttled = true // A server may respond with 429 to the first requests for a new type. The state before it returns.
		case len(fields) > 1 && fields[0] == "STATE":
			before := state
			if state = strings.Join(fields, " "); state != before || !throttled {
				lines = append(lines, state)
			}
			throttled = false
		}
	}
	if len(lines) == 6 { // the order of a state and of the events varies
		slices.Sort(lines[1:4])
		slices.Sort(lines[4:])
	}
	want := []string{
		"DELETED 203.0.113.0/28",
		"DELETED 192.0.2.0/28", "DELETED 198.51.100.0/28", "STATE NotServed NotFound CRDDeleted",
		"ADDED 192.0.2.0/28", "STATE Synced",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	if !strings.Contains(stdout, "15 events: 4 added, 8 updated, 0 by resync, 3 deleted") {
		t.Errorf("no such summary in:\n%s", stdout)
	}
}

func TestProgram_UsageErrorsAreOneLineAndCode2(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--no-such-flag"},
		{"--output", "xml"},
		{"--duration", "-1s"},
		{"--duration", "soon"},
		{"--demo-writes"},
		{"--crd-churn", "widgets"},
		{"--crd-churn", "--context", "mine"},
		{"--kubeconfig="},
		{"--http="},
		{"--http", "nowhere"},
		{"pods/log"},
		{"ipamblocks", "pods"},
	} {
		code, stdout, stderr := call(t, args...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

func TestProgram_AcceptsEachFormOfAReference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ ref, want string }{
		{"IPAMBlock", "watching ipamblocks.v1.crd.projectcalico.org"},
		{"ipamblock.v1.crd.projectcalico.org", "watching ipamblocks.v1.crd.projectcalico.org"},
		{"crd", "watching customresourcedefinitions.v1.apiextensions.k8s.io"},
	} {
		t.Run(tc.ref, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := call(t, tc.ref)
			if code != 0 || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, no %q: %s", code, tc.want, stderr)
			}
			if tc.ref == "crd" && !strings.Contains(stdout, "ADDED    ipamblocks.crd.projectcalico.org\n") {
				t.Errorf("the output does not have the name of the CRD: %s", stdout)
			}
		})
	}
}

func TestProgram_SuggestsANameForAMisspeltReference(t *testing.T) {
	t.Parallel()
	code, _, stderr := call(t, "ipamblcks")
	const want = "ipamblock: ipamblcks: not served by the API server; did you mean ipamblocks.crd.projectcalico.org?\n"
	if code != 1 || !strings.HasSuffix(stderr, want) {
		t.Errorf("exit code %d, want the end %q: %s", code, want, stderr)
	}
}

func TestProgram_HelpExitsWith0(t *testing.T) {
	t.Parallel()
	if code, stdout, _ := call(t, "--help"); code != 0 || !strings.Contains(stdout, "-kubeconfig") {
		t.Errorf("exit code %d, %q", code, stdout)
	}
}

// kubeconfigFor writes a kubeconfig for the server of cfg and returns its path.
func kubeconfigFor(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData, TLSServerName: cfg.ServerName,
	}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func startServer(t *testing.T) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return server
}

func installCRD(t *testing.T, server *embedded.Server) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crdManifest, &crd.Object); err != nil {
		t.Fatal(err)
	}
	if err := server.InstallCRDs(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
}

// startProxy returns a proxy in front of server.
func startProxy(t *testing.T, server *embedded.Server) *faultproxy.Proxy {
	t.Helper()
	client, err := rest.HTTPClientFor(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultproxy.Start(server.Config().Host, client.Transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		client.CloseIdleConnections()
	})
	return proxy
}

func TestProgram_FailuresAreOneLineAndCode1(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	proxy := startProxy(t, server)
	expectFailure := func(args []string, within string) {
		t.Helper()
		code, stdout, stderr := call(t, args...)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		last := lines[len(lines)-1]
		if code != 1 || stdout != "" || !strings.Contains(last, within) {
			t.Errorf("%q: exit code %d, %q, last line %q", args, code, stdout, last)
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "ipamblock: ") {
				t.Errorf("%q: a line that is not the program's: %q", args, line)
			}
		}
	}
	direct := kubeconfigFor(t, server.Config())
	proxied := kubeconfigFor(t, &rest.Config{Host: proxy.URL()})

	expectFailure([]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, "no such file")
	expectFailure([]string{"--kubeconfig", direct, "--context", "nowhere"}, `"nowhere" does not exist`)
	expectFailure([]string{"--kubeconfig", kubeconfigFor(t, &rest.Config{Host: "http://127.0.0.1:1"})}, "connection refused")
	expectFailure([]string{"--kubeconfig", direct}, "CustomResourceDefinition installed?")

	stranger := server.Config()
	stranger.BearerToken = "guessed"
	expectFailure([]string{"--kubeconfig", kubeconfigFor(t, stranger)}, "provide credentials")

	installCRD(t, server)
	proxy.Answer(faultproxy.Resource("crd.projectcalico.org", "ipamblocks"),
		faultproxy.Status(http.StatusForbidden, "Forbidden", `user "eve" cannot list ipamblocks`))
	expectFailure([]string{"--kubeconfig", proxied}, `Forbidden for`)
}

func TestProgram_CtrlCExitsWith0(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	installCRD(t, server)
	cmd := command(t, "--kubeconfig", kubeconfigFor(t, server.Config()))
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "watching") { // until it watches
		t.Log(lines.Text())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if !strings.Contains(stdout.String(), "0 events") {
		t.Errorf("no summary: %q", stdout.String())
	}
}

// untilItWaits runs the program until it only watches, ends it as Ctrl-C does, and returns its output.
func untilItWaits(t *testing.T, cmd *exec.Cmd) (string, error) {
	t.Helper()
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines := bufio.NewScanner(stderr); last != "ipamblock: watching until Ctrl-C" && lines.Scan(); {
		last = lines.Text()
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatalf("%v after %q", err, last)
	}
	if err := cmd.Wait(); err != nil {
		return stdout.String(), fmt.Errorf("%w after %q", err, last)
	}
	return stdout.String(), nil
}

func TestProgram_WritesToARealClusterOnlyWithDemoWrites(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	installCRD(t, server)
	proxy := startProxy(t, server)
	kubeconfig := kubeconfigFor(t, &rest.Config{Host: proxy.URL()})
	writes := func() int { return proxy.Requests(faultproxy.Verb("create", "update", "patch", "delete")) }

	// The duration counts from the start. On a busy machine it may end before the program watches, which is then run for a longer time.
	for duration, watched := 5*time.Second, false; !watched; duration *= 2 {
		begun := time.Now()
		code, stdout, stderr := call(t, "--kubeconfig", kubeconfig, "--duration", duration.String())
		watched = strings.Contains(stderr, "watching for ")
		if tooShort := !watched && time.Since(begun) >= duration; writes() != 0 || !tooShort && (code != 0 || !watched) {
			t.Fatalf("exit code %d, %d writes: %s%s", code, writes(), stdout, stderr)
		}
	}

	code, stdout, stderr := call(t, "--kubeconfig", kubeconfig, "--demo-writes", "crds")
	if code != 2 || stdout != "" || !strings.Contains(stderr, "--demo-writes is only for ipamblocks") || writes() != 0 {
		t.Errorf("exit code %d, %d writes: %s%s", code, writes(), stdout, stderr)
	}

	stdout, err := untilItWaits(t, command(t, "--kubeconfig", kubeconfig, "--context", "x", "--demo-writes", "--output", "json"))
	if err != nil || writes() == 0 {
		t.Fatalf("%v, %d writes: %s", err, writes(), stdout)
	}
	var last struct {
		Table   []block
		Summary *counts
		Event   string
	}
	left := -1
	lines := json.NewDecoder(strings.NewReader(stdout))
	for {
		err := lines.Decode(&last)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("output is not JSON: %v\n%s", err, stdout)
		}
		if last.Table != nil {
			left = len(last.Table)
		}
	}
	if left != 0 {
		t.Errorf("blocks that were not deleted: %d\n%s", left, stdout)
	}
	if last.Summary == nil || last.Summary.Added != 3 || last.Summary.Deleted != 3 {
		t.Errorf("summary: %+v", last.Summary)
	}
}

// An informer may be Degraded with its first list, for example if an object is left out.
func TestViewer_PrintsTheStatesAfterTheFirstList(t *testing.T) {
	var out bytes.Buffer
	newViewer(&out, false).follow(slices.Values([]status.Informer{
		{State: status.StateNotServed, Reason: status.ReasonNotFound},
		{State: status.StateStarting},
		{State: status.StateDegraded, Reason: status.ReasonDecodeFailed, Listed: true},
		{State: status.StateSynced, Listed: true},
		{State: status.StateNotServed, Reason: status.ReasonNotFound, Listed: true},
		{State: status.StateStopped, Listed: true},
	}))
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	if want := []string{"STATE Degraded DecodeFailed", "STATE Synced", "STATE NotServed NotFound"}; !slices.Equal(got, want) {
		t.Errorf("printed %q, want %q", got, want)
	}
}
