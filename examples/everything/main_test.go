package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// programEnv makes the test binary run as the program. Its value is the timeout of the first response.
const programEnv = "EVERYTHING_TEST_PROGRAM"

// patience is how long the program may take for what it does. A busy machine is slow.
const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	if limit := os.Getenv(programEnv); limit != "" {
		var err error
		if answerTimeout, err = time.ParseDuration(limit); err != nil {
			panic(err)
		}
		main()
	}
	goleak.VerifyTestMain(m)
}

// process is the program, as a child process.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
	err   bytes.Buffer
}

// start starts a program that waits for the first response of its server for a minute.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startWith(t, time.Minute, args...)
}

// startWith starts a program with another timeout.
func startWith(t *testing.T, timeout time.Duration, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], args...), lines: make(chan string, 1000)}
	p.cmd.Env = append(os.Environ(), programEnv+"="+timeout.String(), "KUBECONFIG=", "HOME="+t.TempDir())
	p.cmd.Stderr = &p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	return p
}

// wants reads lines until there was a line with each prefix in want, in any order.
func (p *process) wants(want ...string) {
	p.t.Helper()
	var got []string
	timeout := time.After(patience)
	for len(want) > 0 {
		select {
		case line, more := <-p.lines:
			if !more {
				p.t.Fatalf("the program ended; missing %q in %q: %s", want, got, p.err.String())
			}
			got = append(got, line)
			for i, begin := range want {
				if strings.HasPrefix(line, begin) {
					want = append(want[:i:i], want[i+1:]...)
					break
				}
			}
		case <-timeout:
			p.t.Fatalf("missing %q in %q", want, got)
		}
	}
}

// end waits for the end, and returns the exit code and the lines that were not read.
func (p *process) end() (code int, left []string) {
	p.t.Helper()
	for line := range p.lines {
		left = append(left, line)
	}
	if err := p.cmd.Wait(); err != nil && p.cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode(), left
}

// kubeconfigOf writes a kubeconfig for the server at url, and returns its path.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: url}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "c"}},
		CurrentContext: "test",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProgram_PrintsTypesAndObjects(t *testing.T) {
	s := startServer(t)
	s.define("ships", "1", "titanic")
	s.define("wrecks", "2")
	s.failRequests("wrecks")
	p := start(t, "--kubeconfig", kubeconfigOf(t, s.URL), "--context", "test")
	p.wants("+ ships.v1.sea.example.com started", "ADDED   ships.sea.example.com ns/titanic", "+ wrecks.v1.sea.example.com started",
		"! wrecks.v1.sea.example.com Degraded (Unavailable): ")
	<-s.watched // the server sends only later events
	s.define("boats", "3", "boaty")
	p.wants("+ boats.v1.sea.example.com started", "ADDED   boats.sea.example.com ns/boaty")
	s.undefine("boats")
	p.wants("DELETED boats.sea.example.com ns/boaty", "- boats.v1.sea.example.com stopped (CRDDeleted)")
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, left := p.end(); code != 0 || len(left) > 0 || p.err.Len() > 0 {
		t.Errorf("code %d, then %q, %s", code, left, p.err.String())
	}
}

func TestProgram_WatchesOnlySelectedTypes(t *testing.T) {
	for _, args := range [][]string{{"--group", "land.example.com"}, {"--category", "none"}, {"--crd-selector", "team=net"}} {
		s := startServer(t) // a watch of an earlier program would count for a later one
		s.define("ships", "1", "titanic")
		p := start(t, append(args, "--kubeconfig", kubeconfigOf(t, s.URL))...)
		select {
		case <-s.watched:
		case line, more := <-p.lines:
			t.Fatalf("%q: %q, the program runs: %t", args, line, more)
		case <-time.After(patience):
			t.Fatalf("%q: the program does not watch", args)
		}
		select {
		case line := <-p.lines:
			t.Errorf("%q: %s", args, line)
		case <-time.After(200 * time.Millisecond):
		}
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code, _ := p.end(); code != 0 {
			t.Errorf("%q: code %d: %s", args, code, p.err.String())
		}
	}
}

// The program does not wait for a server that can't be reached, that is not an API server, or that
// rejects the credentials.
func TestProgram_FailsOnAWrongServer(t *testing.T) {
	serve := func(handler http.HandlerFunc) *httptest.Server {
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		return s
	}
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts no connection
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	closed := serve(nil)
	closed.Close()
	web := serve(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>Welcome</html>") })
	wrongToken := serve(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintln(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
	})
	for name, tc := range map[string]struct{ url, want string }{
		"refused":     {closed.URL, "connection refused; check the server in the kubeconfig"},
		"no host":     {"https://nowhere.invalid", "check the server in the kubeconfig"},
		"silent":      {"http://" + silent.Addr().String(), " has not answered for 1.5s; check the server in the kubeconfig"},
		"no TLS":      {"https" + strings.TrimPrefix(web.URL, "http"), "HTTP response to HTTPS client; check the server in the kubeconfig"},
		"a web site":  {web.URL, "check the server in the kubeconfig"},
		"wrong token": {wrongToken.URL, " rejects the user: "},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := time.Minute // on a busy machine, a server that responds at once may seem silent
			if name == "silent" || name == "no host" {
				timeout = answerTimeout
			}
			begun := time.Now()
			p := startWith(t, timeout, "--kubeconfig", kubeconfigOf(t, tc.url))
			code, lines := p.end()
			if took := time.Since(begun); took >= timeout && timeout > answerTimeout {
				t.Errorf("it took %v, want at most 2 s", took)
			}
			if text := p.err.String(); code != 1 || len(lines) > 0 || !strings.HasPrefix(text, "everything: "+tc.url) || !strings.Contains(text, tc.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("code %d, %q, %s", code, lines, text)
			}
		})
	}
}

// Without an error, the program would wait and print nothing.
func TestProgram_FailsIfItMayNotListCRDs(t *testing.T) {
	s := startServer(t)
	s.define("ships", "1", "anna")
	s.failRequests("customresourcedefinitions")
	for _, args := range [][]string{nil, {"--all", "--crd-selector", "sea=north"}} {
		p := start(t, append(args, "--kubeconfig", kubeconfigOf(t, s.URL))...)
		code, lines := p.end()
		if text := p.err.String(); code != 1 || len(lines) > 0 || !strings.Contains(text, "or use --all without --crd-selector") || strings.Count(text, "\n") != 1 {
			t.Errorf("%q: code %d, %q, %s", args, code, lines, text)
		}
	}
	p := start(t, "--all", "--kubeconfig", kubeconfigOf(t, s.URL))
	p.wants("ADDED   ships.sea.example.com ns/anna")
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, _ := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestProgram_RejectsAWrongCommandLine(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--group", "a b"}, 2, `Groups can't be "a b"`},
		{[]string{"--crd-selector", "a in"}, 2, "see --help"},
		{[]string{"pods"}, 2, `unexpected argument "pods"`},
		{[]string{"--kubeconfig", "/nowhere"}, 1, "kubeconfig: "},
	} {
		p := start(t, tc.args...)
		code, _ := p.end()
		if code != tc.code || !strings.Contains(p.err.String(), tc.want) {
			t.Errorf("%q: code %d: %s", tc.args, code, p.err.String())
		}
	}
	p := start(t, "--help")
	if code, lines := p.end(); code != 0 || !strings.Contains(strings.Join(lines, "\n"), "-crd-selector") {
		t.Errorf("help: code %d: %q", code, lines)
	}
}
