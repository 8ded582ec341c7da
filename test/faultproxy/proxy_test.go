package faultproxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseRequest(t *testing.T) {
	for _, tc := range []struct {
		method, url string
		want        faultproxy.Request
	}{
		{"GET", "/apis/crd.projectcalico.org/v1/ipamblocks", faultproxy.Request{Verb: "list", Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}},
		{"GET", "/apis/crd.projectcalico.org/v1/ipamblocks?watch=true", faultproxy.Request{Verb: "watch", Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}},
		{"GET", "/apis/crd.projectcalico.org/v1/ipamblocks/a?watch=1", faultproxy.Request{Verb: "watch", Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks", Name: "a"}},
		{"GET", "/api/v1/pods?watch", faultproxy.Request{Verb: "watch", Version: "v1", Resource: "pods"}},
		{"GET", "/api/v1/pods?watch=False", faultproxy.Request{Verb: "list", Version: "v1", Resource: "pods"}},
		{"PUT", "/api/v1/namespaces/ns/finalize", faultproxy.Request{Verb: "update", Version: "v1", Resource: "namespaces", Name: "ns", Subresource: "finalize"}},
		{"GET", "/api/v1/namespaces/ns/pods", faultproxy.Request{Verb: "list", Version: "v1", Resource: "pods", Namespace: "ns"}},
		{"GET", "/api/v1/namespaces/ns/pods/p/status", faultproxy.Request{Verb: "get", Version: "v1", Resource: "pods", Namespace: "ns", Name: "p", Subresource: "status"}},
		{"GET", "/api/v1/namespaces", faultproxy.Request{Verb: "list", Version: "v1", Resource: "namespaces"}},
		{"GET", "/api/v1/namespaces/ns", faultproxy.Request{Verb: "get", Version: "v1", Resource: "namespaces", Name: "ns"}},
		{"POST", "/api/v1/namespaces/ns/pods", faultproxy.Request{Verb: "create", Version: "v1", Resource: "pods", Namespace: "ns"}},
		{"PUT", "/api/v1/namespaces/ns/pods/p", faultproxy.Request{Verb: "update", Version: "v1", Resource: "pods", Namespace: "ns", Name: "p"}},
		{"PATCH", "/api/v1/namespaces/ns/pods/p", faultproxy.Request{Verb: "patch", Version: "v1", Resource: "pods", Namespace: "ns", Name: "p"}},
		{"DELETE", "/api/v1/namespaces/ns/pods/p", faultproxy.Request{Verb: "delete", Version: "v1", Resource: "pods", Namespace: "ns", Name: "p"}},
		{"DELETE", "/api/v1/namespaces/ns/pods", faultproxy.Request{Verb: "deletecollection", Version: "v1", Resource: "pods", Namespace: "ns"}},
		{"GET", "/apis", faultproxy.Request{Verb: "get"}},
		{"GET", "/apis/apps/v1", faultproxy.Request{Verb: "get"}},
		{"GET", "/readyz", faultproxy.Request{Verb: "get"}},
		{"GET", "/", faultproxy.Request{Verb: "get"}},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.url, nil)
		tc.want.Path = r.URL.Path
		_, tc.want.Query, _ = strings.Cut(tc.url, "?")
		if diff := cmp.Diff(tc.want, faultproxy.ParseRequest(r)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tc.method, tc.url, diff)
		}
	}
}

func TestParseRequest_HasQueryAndHeaders(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis?timeout=32s", nil)
	r.Header.Add("Accept", "application/json;as=APIGroupDiscoveryList")
	r.Header.Add("Accept", "application/json")
	r.Header.Set("If-None-Match", `"1"`)
	want := faultproxy.Request{
		Verb: "get", Path: "/apis", Query: "timeout=32s", IfNoneMatch: `"1"`,
		Accept: "application/json;as=APIGroupDiscoveryList,application/json",
	}
	if got := faultproxy.ParseRequest(r); got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
}

// serve starts a server and a proxy to it. The server responds to watches until the client
// disconnects, and to other requests with their path.
func serve(t *testing.T) (*faultproxy.Proxy, *http.Client) {
	t.Helper()
	return serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Path)
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
}

// serveBy starts a server and a proxy to it.
func serveBy(t *testing.T, handler http.Handler) (*faultproxy.Proxy, *http.Client) {
	t.Helper()
	server := httptest.NewServer(handler)
	transport := &http.Transport{}
	proxy, err := faultproxy.Start(server.URL, transport)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := proxy.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		transport.CloseIdleConnections()
		server.Close()
	})
	return proxy, client
}

// open sends a request and returns the status and the body, which is also closed at the end of
// the test.
func open(t *testing.T, client *http.Client, url string) (status int, body io.ReadCloser) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res.StatusCode, res.Body
}

// answer is a response, with the part of the body before an error.
type answer struct {
	code   int
	header http.Header
	body   string
	err    error // in reading the body
}

// fetch sends a request for url with headers, as key, value, key, …, and reads the response.
func fetch(t *testing.T, client *http.Client, url string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body), err}
}

func get(t *testing.T, client *http.Client, url string) (status int, body string) {
	t.Helper()
	status, stream := open(t, client, url)
	read, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	return status, string(read)
}

// eventually waits until holds returns true: the proxy may notice an event later than the client.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timeout: %s", what)
		}
	}
}

const blocks = "/apis/crd.projectcalico.org/v1/ipamblocks"

func TestProxy_CountsOpenWatches(t *testing.T) {
	proxy, client := serve(t)
	ofBlocks := faultproxy.Resource("crd.projectcalico.org", "ipamblocks")
	_, first := open(t, client, proxy.URL()+blocks+"?watch=true")
	_, second := open(t, client, proxy.URL()+blocks+"?watch=true")
	open(t, client, proxy.URL()+"/api/v1/pods?watch=true")
	get(t, client, proxy.URL()+blocks)
	if got := proxy.OpenWatches(ofBlocks); got != 2 {
		t.Errorf("open = %d, want 2", got)
	}
	_ = first.Close()
	eventually(t, "one watch closed", func() bool { return proxy.OpenWatches(ofBlocks) == 1 })
	_ = second.Close()
	eventually(t, "both watches closed", func() bool { return proxy.OpenWatches(ofBlocks) == 0 })
	if got := proxy.Requests(faultproxy.All(ofBlocks, faultproxy.Verb("watch"))); got != 2 {
		t.Errorf("watch requests = %d, want 2", got)
	}
	if got := proxy.Requests(ofBlocks); got != 3 {
		t.Errorf("requests = %d, want 3", got)
	}
}

func TestProxy_AnswersInsteadOfTheServer(t *testing.T) {
	proxy, client := serve(t)
	proxy.Answer(faultproxy.Path(blocks), faultproxy.Status(http.StatusForbidden, "Forbidden", "not you"))
	proxy.Answer(faultproxy.All(), http.NotFoundHandler()) // the second answer
	if got, _ := get(t, client, proxy.URL()+blocks); got != http.StatusForbidden {
		t.Errorf("status = %d, want 403", got)
	}
	if got, _ := get(t, client, proxy.URL()+"/api/v1/pods"); got != http.StatusNotFound {
		t.Errorf("status = %d, want 404", got)
	}
	proxy.Heal()
	if status, body := get(t, client, proxy.URL()+blocks); status != http.StatusOK || body != blocks {
		t.Errorf("healed: %d %q", status, body)
	}
}

// net/http ends the context of a request whose connection is cut only after the body has been
// read.
func TestProxy_CloseEndsResponsesThatHang(t *testing.T) {
	proxy, client := serve(t)
	arrived := make(chan struct{})
	proxy.Answer(faultproxy.All(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL()+blocks, strings.NewReader("unread"))
		if err != nil {
			t.Error(err)
			return
		}
		if res, err := client.Do(req); err == nil {
			_ = res.Body.Close()
			t.Errorf("status %d", res.StatusCode)
		}
	}()
	<-arrived
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
	<-done
}

func TestProxy_CutWatchesBreaksMatchingStreams(t *testing.T) {
	proxy, client := serve(t)
	_, cut := open(t, client, proxy.URL()+blocks+"?watch=true")
	open(t, client, proxy.URL()+"/api/v1/pods?watch=true")
	if got := proxy.CutWatches(faultproxy.Path(blocks)); got != 1 {
		t.Errorf("cut = %d, want 1", got)
	}
	proxy.Forget()
	if got := proxy.OpenWatches(nil); got != 1 {
		t.Errorf("open = %d, want 1", got)
	}
	if got := proxy.Requests(nil); got != 0 {
		t.Errorf("forgotten requests: %d", got)
	}
	if got, err := io.ReadAll(cut); !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != blocks {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestProxy_CutWatchesBreaksStreamsThatWouldEndWithoutError(t *testing.T) {
	proxy, client := serve(t)
	proxy.Answer(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	_, cut := open(t, client, proxy.URL()+blocks+"?watch=true")
	proxy.CutWatches(nil)
	if got, err := io.ReadAll(cut); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, %v", got, err)
	}
}

// An event of what is written after the cut must not come by the watch that was cut.
func TestProxy_CutWatchesSendNothingLater(t *testing.T) {
	proxy, client := serve(t)
	later := make(chan struct{})
	proxy.Answer(nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "before")
		w.(http.Flusher).Flush()
		<-later
		if _, err := io.WriteString(w, "after"); err == nil {
			t.Error("a write after the cut has no error")
		}
		w.(http.Flusher).Flush()
	}))
	_, cut := open(t, client, proxy.URL()+blocks+"?watch=true")
	proxy.CutWatches(nil)
	close(later)
	if got, err := io.ReadAll(cut); !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != "before" {
		t.Errorf("read %q, %v", got, err)
	}
}

// The client gets only an EOF: the log has the cause.
func TestProxy_LogsAPanicOfAHandler(t *testing.T) {
	proxy, client := serve(t)
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	proxy.Answer(nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug of the test") }))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL()+blocks, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := client.Do(req); err == nil {
		_ = res.Body.Close()
		t.Errorf("status %d", res.StatusCode)
	}
	log.SetOutput(os.Stderr) // with the lock of the writes
	if got := logged.String(); !strings.Contains(got, "a bug of the test") {
		t.Errorf("the log has %q", got)
	}
}

func TestProxy_PastIsInOrderOfArrival(t *testing.T) {
	proxy, client := serve(t)
	get(t, client, proxy.URL()+blocks+"?limit=1")
	get(t, client, proxy.URL()+"/api/v1/pods")
	get(t, client, proxy.URL()+blocks+"?limit=1&continue=x")
	var got []string
	for _, req := range proxy.Past(faultproxy.Path(blocks)) {
		got = append(got, req.Query)
	}
	if diff := cmp.Diff([]string{"limit=1", "limit=1&continue=x"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := proxy.Requests(nil); got != 3 {
		t.Errorf("requests = %d, want 3", got)
	}
}

func TestStart_RejectsAnInvalidURL(t *testing.T) {
	for _, target := range []string{"", "127.0.0.1:1", "://"} {
		switch proxy, err := faultproxy.Start(target, nil); {
		case err == nil:
			t.Errorf("Start(%q): no error; Close: %v", target, proxy.Close())
		case !strings.Contains(err.Error(), "such as https://"):
			t.Errorf("Start(%q): %v", target, err)
		}
	}
}
