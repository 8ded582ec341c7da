// Package cluster starts real API servers for scenarios, and fills them.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/test/envtest/controlplane"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// Settle is how long after its establishment a server still creates the objects of a CRD
// slowly.
const Settle = 2100 * time.Millisecond

// The names of real servers.
const (
	Embedded      = "embedded"
	KubeAPIServer = "kube-apiserver"
)

// Connection says how a server is reached. Processes pass it on as JSON.
type Connection struct {
	Host       string `json:"host"`
	Token      string `json:"token,omitempty"`
	CAData     []byte `json:"caData,omitempty"`
	CertData   []byte `json:"certData,omitempty"`
	KeyData    []byte `json:"keyData,omitempty"`
	ServerName string `json:"serverName,omitempty"`
}

// Config returns a config without a limit on the rate of requests.
func (c Connection) Config() *rest.Config {
	return &rest.Config{
		Host: c.Host, BearerToken: c.Token, QPS: -1, WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CAData, ServerName: c.ServerName, CertData: c.CertData, KeyData: c.KeyData},
	}
}

// Server is a running API server.
type Server struct {
	Connection

	// Stop ends the server.
	Stop func() error
}

// Start starts the server with this name.
func Start(ctx context.Context, name string, progress io.Writer) (*Server, error) {
	switch name {
	case Embedded:
		server, err := embedded.Start(ctx, embedded.WithProgress(progress))
		if err != nil {
			return nil, err
		}
		return reached(server.Config(), server.Stop), nil
	case KubeAPIServer:
		assets, err := controlplane.Assets(ctx, progress)
		if err != nil {
			return nil, err
		}
		log.SetLogger(logr.Discard()) // envtest logs otherwise
		environment := &envtest.Environment{
			BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute,
		}
		cfg, err := environment.Start()
		if err != nil {
			return nil, errors.Join(err, environment.Stop())
		}
		return reached(cfg, environment.Stop), nil
	}
	return nil, fmt.Errorf("there is no server %q", name)
}

func reached(cfg *rest.Config, stop func() error) *Server {
	return &Server{Stop: stop, Connection: Connection{
		Host: cfg.Host, Token: cfg.BearerToken, CAData: cfg.CAData, ServerName: cfg.ServerName, CertData: cfg.CertData, KeyData: cfg.KeyData,
	}}
}

// InstallCRDs installs CRDs, in a few requests at a time, and waits until the server has
// established them and creates their objects fast.
func (c Connection) InstallCRDs(ctx context.Context, crds ...*unstructured.Unstructured) error {
	const batches = 16 // a new CRD is served after a second
	if err := InParallel(ctx, batches, batches, func(ctx context.Context, i int) error {
		return embedded.InstallCRDs(ctx, c.Config(), crds[i*len(crds)/batches:(i+1)*len(crds)/batches]...)
	}); err != nil {
		return err
	}
	return usage.Sleep(ctx, Settle)
}

// InParallel calls do with each number below n, in some goroutines at a time, and waits for
// them. After an error it starts no further call, and returns the first error.
func InParallel(ctx context.Context, goroutines, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var calls sync.WaitGroup
	for range goroutines {
		calls.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}
