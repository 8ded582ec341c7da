package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

//go:embed crd.yaml
var shipsCRD []byte

var ships = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "ships"}

// cluster is an API server that can be stopped and started again, with its data and at the same address.
type cluster struct {
	name    string
	data    string                                // directory
	server  *embedded.Server                      // nil: it has not started
	forward atomic.Pointer[httputil.ReverseProxy] // to server; nil: it does not run
	address *httptest.Server
}

// newCluster starts a cluster that serves ships.
func newCluster(ctx context.Context, name string) (*cluster, error) {
	data, err := os.MkdirTemp("", "clusters-")
	if err != nil {
		return nil, err
	}
	c := &cluster{name: name, data: data}
	c.address = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forward := c.forward.Load()
		if forward == nil {
			panic(http.ErrAbortHandler) // closes the connection
		}
		forward.ServeHTTP(w, r)
	}))
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	crd := &unstructured.Unstructured{}
	err = yaml.Unmarshal(shipsCRD, &crd.Object)
	if err == nil {
		err = c.server.InstallCRDs(ctx, crd)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *cluster) start(ctx context.Context) (err error) {
	if c.server, err = embedded.Start(ctx, embedded.WithDataDir(c.data)); err != nil {
		return err
	}
	transport, err := rest.TransportFor(c.server.Config())
	if err != nil {
		return err
	}
	to, err := url.Parse(c.server.Config().Host)
	if err != nil {
		return err
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	c.forward.Store(proxy)
	return nil
}

func (c *cluster) stop() error {
	c.forward.Store(nil)
	if c.server == nil {
		return nil
	}
	return c.server.Stop()
}

func (c *cluster) close() error {
	err := c.stop()
	c.address.CloseClientConnections()
	c.address.Close()
	return errors.Join(err, os.RemoveAll(c.data))
}

// launch creates a ship.
func (c *cluster) launch(ctx context.Context, ship string) error {
	client, err := dynamic.NewForConfig(c.server.Config())
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("example.com/v1")
	obj.SetKind("Ship")
	obj.SetName(ship)
	_, err = client.Resource(ships).Create(ctx, obj, metav1.CreateOptions{})
	return err
}

// demonstrate watches ships in two clusters. One of them stops, and returns.
func demonstrate(ctx context.Context, to report) (err error) {
	to = to.serial() // watch calls it too
	to("", "starting two API servers; the first start takes some minutes to build them")
	east, err := newCluster(ctx, "east")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, east.close()) }()
	west, err := newCluster(ctx, "west")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, west.close()) }()

	clusters := map[string]*rest.Config{"east": {Host: east.address.URL}, "west": {Host: west.address.URL}}
	return whileWatching(ctx, clusters, to, func(await func(prefixes ...string) error) error {
		for _, step := range []func() error{
			func() error { return errors.Join(east.launch(ctx, "anna"), west.launch(ctx, "bora")) },
			func() error { return await("east added anna", "west added bora") },
			func() error { to("", "west stops"); return west.stop() },
			func() error { return await("west Degraded") },
			func() error { return east.launch(ctx, "cora") },
			func() error { return await("east added cora") },
			func() error { to("", "west starts again"); return west.start(ctx) },
			func() error { return west.launch(ctx, "dora") },
			func() error { return await("west added dora", "west Synced") },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
}

// errWatchEnded is the error of await after the end of the watch.
var errWatchEnded = errors.New("the watch has ended")

// whileWatching watches ships while it calls steps, whose await waits until there is a line with each of the prefixes, or
// until the watch ends. Calls of to are concurrent with steps.
func whileWatching(ctx context.Context, clusters map[string]*rest.Config, to report, steps func(await func(prefixes ...string) error) error) error {
	lines := make(chan string, 1000)
	running, stop := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		err := watch(running, clusters, ships, func(cluster, text string) {
			to(cluster, text)
			lines <- cluster + " " + text
		})
		stop(errWatchEnded)
		ended <- err
	}()
	err := steps(func(prefixes ...string) error { return awaitLines(running, lines, prefixes...) })
	stop(nil)
	return errors.Join(err, <-ended)
}

// awaitLines waits until there is a line with each of the prefixes.
func awaitLines(ctx context.Context, lines <-chan string, prefixes ...string) error {
	missing := map[string]bool{}
	for _, prefix := range prefixes {
		missing[prefix] = true
	}
	for len(missing) > 0 {
		select {
		case line := <-lines:
			for prefix := range missing {
				if strings.HasPrefix(line, prefix) {
					delete(missing, prefix)
				}
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for %q: %w", prefixes, context.Cause(ctx))
		}
	}
	return nil
}
