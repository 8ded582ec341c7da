package faultproxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// twoServers starts a proxy to a server that responds "first", and another one that responds
// "second". Other is the URL of the latter.
func twoServers(t *testing.T) (proxy *faultproxy.Proxy, client *http.Client, other string) {
	t.Helper()
	named := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, r.URL.Path) })
	}
	proxy, client = serveBy(t, named("first"))
	second := httptest.NewServer(named("second"))
	t.Cleanup(second.Close)
	return proxy, client, second.URL
}

func TestServer_GetsTheRequests(t *testing.T) {
	proxy, client, other := twoServers(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	proxy.Inject(faultproxy.Verb("list"), faultproxy.Alternate(faultproxy.Server(other, transport)))
	for i, want := range []string{"first", "second", "first", "second"} {
		if _, body := get(t, client, proxy.URL()+blocks); body != want+blocks {
			t.Errorf("request %d: %q, want %q", i, body, want)
		}
	}
}

func TestServer_FailsForAnInvalidTarget(t *testing.T) {
	for _, target := range []string{"", "127.0.0.1:1", "://", "http://"} {
		w := httptest.NewRecorder()
		faultproxy.Server(target, nil)(nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if w.Code != http.StatusInternalServerError {
			t.Errorf("%q: %d", target, w.Code)
		}
	}
}

func TestAlternateConnections_AreOfOneKindEach(t *testing.T) {
	proxy, _, other := twoServers(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	proxy.Inject(nil, faultproxy.AlternateConnections(faultproxy.Server(other, transport)))
	for i, want := range []string{"first", "second", "first", "second"} {
		connection := &http.Transport{} // with a connection of its own
		client := &http.Client{Transport: connection}
		for range 3 {
			res, err := client.Get(proxy.URL() + "/") //nolint:noctx // the test's server responds at once
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if string(body) != want+"/" {
				t.Errorf("connection %d: %q, want %q", i, body, want)
			}
		}
		connection.CloseIdleConnections()
	}
}
