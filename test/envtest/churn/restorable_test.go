package churn_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// restorable is an embedded server whose etcd can be backed up and restored, behind an address that stays the same. While
// the server is down, its address refuses connections.
type restorable struct {
	dir, backup string // of etcd
	address     string
	server      *embedded.Server
	front       *http.Server
	behind      *http.Client
}

// startRestorable starts a server that is stopped at the end of the test.
func startRestorable(t *testing.T) *restorable {
	t.Helper()
	dir := t.TempDir()
	s := &restorable{dir: filepath.Join(dir, "etcd"), backup: filepath.Join(dir, "backup"), address: "127.0.0.1:0"}
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// config returns the client configuration for the address.
func (s *restorable) config() *rest.Config { return &rest.Config{Host: "http://" + s.address} }

func (s *restorable) start(ctx context.Context) error {
	server, err := embedded.Start(ctx, embedded.WithDataDir(s.dir))
	if err != nil {
		return err
	}
	s.server = server
	if s.behind, err = rest.HTTPClientFor(server.Config()); err != nil {
		return err
	}
	target, err := url.Parse(server.Config().Host)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	s.address = listener.Addr().String()
	s.front = &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     s.behind.Transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // of requests while the server is down
	}}
	go func(front *http.Server) { _ = front.Serve(listener) }(s.front)
	return nil
}

func (s *restorable) stop() error {
	var err error
	if s.front != nil {
		err = s.front.Close()
		s.behind.CloseIdleConnections()
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Stop())
	}
	s.front, s.server = nil, nil
	return err
}

// between stops the server, calls change, and starts the server again.
func (s *restorable) between(ctx context.Context, change func() error) error {
	err := errors.Join(s.stop(), change())
	return errors.Join(err, s.start(ctx))
}

// backUp copies the data of etcd.
func (s *restorable) backUp(ctx context.Context) error {
	return s.between(ctx, func() error { return replaceDir(s.backup, s.dir) })
}

// restore replaces the data of etcd by the copy.
func (s *restorable) restore(ctx context.Context) error {
	return s.between(ctx, func() error { return replaceDir(s.dir, s.backup) })
}

func replaceDir(dir, from string) error {
	return errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(from)))
}
