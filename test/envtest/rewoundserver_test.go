package envtest_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// rewoundServer is an embedded server whose etcd can be restored, behind an address that stays the same. While the
// server is down, its address refuses connections.
type rewoundServer struct {
	dir     string // of etcd
	address string
	server  *embedded.Server
	front   *http.Server
	behind  *http.Client
}

// startRewound starts a server that is stopped at the end of the spec.
func startRewound(ctx context.Context) *rewoundServer {
	GinkgoHelper()
	s := &rewoundServer{dir: filepath.Join(GinkgoT().TempDir(), "etcd"), address: "127.0.0.1:0"}
	s.start(ctx, nil)
	DeferCleanup(func() { s.stop() })
	return s
}

// config returns the client configuration for the address.
func (s *rewoundServer) config() *rest.Config {
	return &rest.Config{Host: "http://" + s.address, QPS: -1}
}

// start starts the server, and calls written, if it is not nil, before the address accepts connections.
func (s *rewoundServer) start(ctx context.Context, written func()) {
	GinkgoHelper()
	server, err := embedded.Start(ctx, embedded.WithDataDir(s.dir))
	Expect(err).NotTo(HaveOccurred())
	s.server = server
	config := server.Config()
	s.behind, err = rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	target, err := url.Parse(config.Host)
	Expect(err).NotTo(HaveOccurred())
	if written != nil {
		written()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	Expect(err).NotTo(HaveOccurred())
	s.address = listener.Addr().String()
	s.front = &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     s.behind.Transport,
		FlushInterval: -1,
	}}
	go func(front *http.Server) { _ = front.Serve(listener) }(s.front)
}

// stop stops the server. It may be called again.
func (s *rewoundServer) stop() {
	GinkgoHelper()
	if s.server == nil {
		return
	}
	Expect(s.front.Close()).To(Succeed())
	s.behind.CloseIdleConnections()
	Expect(s.server.Stop()).To(Succeed())
	s.server = nil
}

// backUp copies the data of etcd. The server is down for that time.
func (s *rewoundServer) backUp(ctx context.Context) (backup string) {
	GinkgoHelper()
	s.stop()
	backup = filepath.Join(GinkgoT().TempDir(), "backup")
	Expect(os.CopyFS(backup, os.DirFS(s.dir))).To(Succeed())
	s.start(ctx, nil)
	return backup
}

// restore replaces the data of etcd by a copy of backup. Written is that of start.
func (s *rewoundServer) restore(ctx context.Context, backup string, written func()) {
	GinkgoHelper()
	s.stop()
	Expect(os.RemoveAll(s.dir)).To(Succeed())
	Expect(os.CopyFS(s.dir, os.DirFS(backup))).To(Succeed())
	s.start(ctx, written)
}
