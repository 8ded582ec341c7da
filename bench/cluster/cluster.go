// Package cluster starts real API servers for scenarios, and fills them.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/test/envtest/controlplane"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// The names of real servers.
const (
	Embedded      = "embedded"
	KubeAPIServer = "kube-apiserver"
)

// Connection is how clients reach a server. Processes exchange it as JSON.
type Connection struct {
	Host  string               `json:"host"`
	Token string               `json:"token"`
	TLS   rest.TLSClientConfig `json:"tls"`
}

// Config returns a config without a rate limit.
func (c Connection) Config() *rest.Config {
	return &rest.Config{Host: c.Host, BearerToken: c.Token, QPS: -1, WarningHandler: rest.NoWarnings{}, TLSClientConfig: c.TLS}
}

// Server is a server to start.
type Server struct {
	Name string
	// Plain puts a proxy in front of the server, so that clients use HTTP/1.1 without TLS.
	Plain bool
	Size
}

// Start starts the server and fills it. The connection is a [Connection].
func (s Server) Start(ctx context.Context, progress io.Writer) (connection any, end func() error, err error) {
	start := startEmbedded
	if s.Name == KubeAPIServer {
		start = startKubeAPIServer
	}
	cfg, stop, err := start(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	c := Connection{Host: cfg.Host, Token: cfg.BearerToken, TLS: cfg.TLSClientConfig}
	if s.CRDs > 0 {
		if err := c.Fill(ctx, s.Size); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("fill the server: %w", err), stop())
		}
	}
	if !s.Plain {
		return c, stop, nil
	}
	transport, err := rest.TransportFor(c.Config())
	proxy, failed := faultproxy.Start(c.Host, transport) //nolint:contextcheck // Close ends it
	if err := errors.Join(err, failed); err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return Connection{Host: proxy.URL()}, func() error { return errors.Join(proxy.Close(), stop()) }, nil
}

func startEmbedded(ctx context.Context, progress io.Writer) (*rest.Config, func() error, error) {
	server, err := embedded.Start(ctx, embedded.WithProgress(progress))
	if err != nil {
		return nil, nil, err
	}
	return server.Config(), server.Stop, nil
}

func startKubeAPIServer(ctx context.Context, progress io.Writer) (*rest.Config, func() error, error) {
	assets, err := controlplane.Assets(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	log.SetLogger(logr.Discard()) // without it, envtest logs
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	cfg, err := environment.Start()
	if err != nil {
		return nil, nil, errors.Join(err, environment.Stop())
	}
	return cfg, environment.Stop, nil
}
