package embedded_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/url"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// stopsInTime is much longer than Stop takes, and shorter than the time after which Stop kills
// the server.
const stopsInTime = 10 * time.Second

func TestServer_StopEndsOpenWatches(t *testing.T) {
	for _, n := range []int{1, 100} {
		t.Run(fmt.Sprintf("%d watches", n), func(t *testing.T) {
			server := start(t)
			if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
				t.Fatal(err)
			}
			widgets := client(t, server.Config())
			watches := make([]watch.Interface, n)
			for i := range watches {
				var err error
				if watches[i], err = widgets.Watch(t.Context(), metav1.ListOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			stopInTime(t, server)
			for i, w := range watches {
				for event := range w.ResultChan() {
					t.Errorf("watch %d: event %s %v, want the end of the stream", i, event.Type, event.Object)
				}
			}
		})
	}
}

func TestServer_StopEndsARequestWithAnIncompleteBody(t *testing.T) {
	server := start(t)
	cfg := server.Config()
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	dialer := &tls.Dialer{Config: tlsConfig}
	conn, err := dialer.DialContext(t.Context(), "tcp", to.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", path, to.Host, cfg.BearerToken)
	if err != nil {
		t.Fatal(err)
	}
	// The server requests the body when it begins to read it.
	if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 100 Continue"))); err != nil {
		t.Fatal(err)
	}
	stopInTime(t, server)
}

func stopInTime(t *testing.T, server *embedded.Server) {
	t.Helper()
	begun := time.Now()
	stop(t, server)
	took := time.Since(begun)
	t.Logf("Stop took %v", took.Round(time.Millisecond))
	if took > stopsInTime {
		t.Errorf("Stop took %v, want less than a second", took)
	}
}
