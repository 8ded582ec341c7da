package inprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"github.com/gvrkit/gvrkit/test/envtest/embedded/privatedir"
)

const (
	// readyPoll is the interval of requests for /readyz while the server starts.
	readyPoll = 20 * time.Millisecond
	// readyTimeout is the maximum time of a start after its context has ended.
	readyTimeout = time.Minute
)

// Options are the options of a server. The zero value is a server on a temporary directory
// that Stop removes.
type Options struct {
	// DataDir has etcd's files. With the directory of an earlier server, a server has
	// the same objects. Empty means a directory in TempDir.
	DataDir string

	// TempDir has files of the running server, such as etcd's socket. Other users must
	// not be able to enter it (mode 0700), because etcd requires no credentials. Stop
	// does not remove it. Empty means a new directory that Stop removes.
	TempDir string

	// FeatureGates are set in the feature gates of k8s.io/apiserver, which are global
	// variables: they remain set after Stop.
	FeatureGates map[string]bool
}

// Server is a running API server. Its methods are safe for concurrent use.
type Server struct {
	config *rest.Config
	cancel context.CancelFunc
	done   chan struct{}
	err    error // written before done is closed

	removeDir string
	stopOnce  sync.Once
	removeErr error
}

// Start runs a server and returns when it is ready. Ctx limits only the start: a
// running server ends with Stop. On an error, no goroutine and no file is left. If ctx
// ends during the start, Start may take another second to stop the server.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if err := setGates(opts.FeatureGates); err != nil {
		return nil, fmt.Errorf("inprocess: feature gates: %w", err)
	}
	s := &Server{done: make(chan struct{})}
	if opts.TempDir == "" {
		dir, err := privatedir.New()
		if err != nil {
			return nil, fmt.Errorf("inprocess: temporary directory: %w", err)
		}
		opts.TempDir, s.removeDir = dir, dir
	}
	if opts.DataDir == "" {
		opts.DataDir = filepath.Join(opts.TempDir, "data")
	}
	if err := s.run(ctx, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("inprocess: %w", err), s.removeTemp())
	}
	if err := s.waitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("inprocess: not ready: %w", err), s.Stop())
	}
	return s, nil
}

// setGates sets gates if all of them are known. An unknown gate that is set would make every
// later start in this process fail.
func setGates(gates map[string]bool) error {
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name := range gates {
		if _, ok := known[featuregate.Feature(name)]; !ok {
			return fmt.Errorf("unknown feature gate %q", name)
		}
	}
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(gates)
}

// run starts etcd and the API server. The goroutine that serves owns both, and
// closes s.done when they have ended.
func (s *Server) run(ctx context.Context, opts Options) error {
	if err := privatedir.Check(opts.TempDir); err != nil {
		return fmt.Errorf("temporary directory: %w", err)
	}
	socket := privatedir.Socket(opts.TempDir)
	store, err := startEtcd(ctx, opts.DataDir, socket)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	clients := newClients()
	srv, err := newAPIServer(store.Server, socket, clients)
	if err != nil {
		store.Close()
		return fmt.Errorf("apiserver: %w", err)
	}
	s.config = rest.CopyConfig(srv.GenericAPIServer.LoopbackClientConfig)

	// The server keeps the values of ctx, but does not end with it.
	serveCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go func() {
		defer close(s.done)
		defer store.Close() // after the end of the API server
		s.err = serve(serveCtx, srv, clients)
	}()
	return nil
}

// serve serves until ctx ends, and then ends the requests and connections of clients.
func serve(ctx context.Context, srv *apiserver.CustomResourceDefinitions, clients *clients) error {
	ended := make(chan error, 1)
	go func() { ended <- srv.GenericAPIServer.PrepareRun().RunWithContext(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		clients.end()
		return <-ended
	}
}

// waitReady waits until the server is ready, also after the end of ctx: a server that is
// stopped before its start-up hooks have run ends the process. This takes about a second;
// waitReady returns an error after readyTimeout.
func (s *Server) waitReady(ctx context.Context) error {
	client, err := rest.UnversionedRESTClientFor(withCodec(s.config))
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := client.Get().AbsPath("/readyz").Do(waiting).Error()
		if err == nil {
			return ctx.Err()
		}
		select {
		case <-s.done:
			return errors.New("the server ended while it started")
		case <-waiting.Done():
			return errors.Join(waiting.Err(), err)
		case <-tick.C:
		}
	}
}

// Config returns a copy of the client configuration for the server: its address, certificate
// authority and bearer token.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Done returns a channel that closes when the server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.done }

// Stop stops the server, waits until the server and etcd have ended, and removes the temporary
// directory of Start. It takes some tenths of a second, with any number of open watches, which
// end at once. Other requests have a second before they are cancelled. Later calls return the
// same error.
func (s *Server) Stop() error {
	s.cancel()
	<-s.done
	return errors.Join(s.err, s.removeTemp())
}

func (s *Server) removeTemp() error {
	s.stopOnce.Do(func() {
		if s.removeDir != "" {
			s.removeErr = os.RemoveAll(s.removeDir)
		}
	})
	return s.removeErr
}
