// Package cluster starts real API servers for scenarios, and fills them.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
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
	// Gates are feature gates of an embedded server.
	Gates map[string]bool
	Size
}

// Start starts the server and fills it. The connection is a [Connection].
func (s Server) Start(ctx context.Context, progress io.Writer) (connection any, end func() error, err error) {
	start := s.startEmbedded
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

func (s Server) startEmbedded(ctx context.Context, progress io.Writer) (*rest.Config, func() error, error) {
	server, err := embedded.Start(ctx, embedded.WithProgress(progress), embedded.WithFeatureGates(s.Gates))
	if err != nil {
		return nil, nil, err
	}
	return server.Config(), server.Stop, nil
}

func startKubeAPIServer(ctx context.Context, progress io.Writer) (*rest.Config, func() error, error) {
	log.SetLogger(logr.Discard()) // without it, envtest logs
	environment, err := controlplane.Start(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	return environment.Config, environment.Stop, nil
}

// Size is the number of CRDs on a server, the size of each schema, and the number of objects of
// each CRD.
type Size struct{ CRDs, SchemaBytes, Objects int }

// Fill installs CRDs and creates their objects.
func (c Connection) Fill(ctx context.Context, s Size) error {
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	all := make([]*unstructured.Unstructured, s.CRDs)
	for i, d := range Definitions(s.CRDs) {
		all[i] = d.CRD(s.SchemaBytes)
	}
	if err := Each(ctx, batches, func(ctx context.Context, i int) error { // an API server takes about a second for each call
		return embedded.InstallCRDs(ctx, c.Config(), all[i*len(all)/batches:(i+1)*len(all)/batches]...)
	}); err != nil {
		return err
	}
	return Each(ctx, s.CRDs*s.Objects, func(ctx context.Context, i int) error {
		of := NewDefinition(i / s.Objects).Types[0]
		obj := of.Object(i % s.Objects)
		_, err := client.Resource(of.GVR).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{})
		return err
	})
}

// batches is the number of requests that are sent at the same time.
const batches = 16

// Each calls do with each number below n, some at the same time, until one fails.
func Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(batches)
	for i := range n {
		calls.Go(func() error { return do(ctx, i) })
	}
	return calls.Wait()
}

// TemporaryCRD is a CRD that is created and deleted during a measurement. It is not safe for
// concurrent use.
type TemporaryCRD struct {
	Definition
	watch.Interface // of the CRD; Stop ends it

	crds     dynamic.ResourceInterface // with its own connection, which does not delay the measured client
	manifest *unstructured.Unstructured
}

// TemporaryCRD returns a CRD that is not yet on the server. The caller must call Stop.
func (c Connection) TemporaryCRD(ctx context.Context, d Definition, schemaBytes int) (*TemporaryCRD, error) {
	cfg := c.Config()
	cfg.Dial = (&net.Dialer{}).DialContext
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", d.Name()).String()}
	crds := client.Resource(CRDs)
	list, err := crds.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	opts.ResourceVersion = list.GetResourceVersion()
	seen, err := crds.Watch(ctx, opts)
	return &TemporaryCRD{d, seen, crds, d.CRD(schemaBytes)}, err
}

// Create creates the CRD. It returns the time of the watch event in which it is Established.
func (c *TemporaryCRD) Create(ctx context.Context) (time.Time, error) {
	if _, err := c.crds.Create(ctx, c.manifest, metav1.CreateOptions{}); err != nil {
		return time.Time{}, err
	}
	return c.await(ctx, func(event watch.EventType, crd *unstructured.Unstructured) bool {
		return event != watch.Deleted && Established(crd)
	})
}

// Delete deletes the CRD. It returns the time of the watch event for its deletion. Soon after the creation, the server may fail to delete the
// objects, and would try again after minutes: Delete writes an annotation then, so that it tries at once.
func (c *TemporaryCRD) Delete(ctx context.Context) (time.Time, error) {
	if err := c.crds.Delete(ctx, c.Name(), metav1.DeleteOptions{}); err != nil {
		return time.Time{}, err
	}
	return c.await(ctx, func(event watch.EventType, crd *unstructured.Unstructured) bool {
		if event != watch.Deleted && hasCondition(crd, func(c map[string]any) bool { return c["reason"] == "InstanceDeletionFailed" }) {
			body := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now().Format(time.RFC3339Nano))
			_, _ = c.crds.Patch(ctx, c.Name(), types.MergePatchType, body, metav1.PatchOptions{}) // the CRD may be gone now
		}
		return event == watch.Deleted
	})
}

func (c *TemporaryCRD) await(ctx context.Context, of func(watch.EventType, *unstructured.Unstructured) bool) (time.Time, error) {
	for {
		select {
		case event, more := <-c.ResultChan():
			now := time.Now()
			if !more {
				return now, errors.New("the benchmark's own watch has ended")
			}
			if crd, ok := event.Object.(*unstructured.Unstructured); ok && of(event.Type, crd) {
				return now, nil
			}
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// Established reports whether the condition Established of a CRD is true.
func Established(crd *unstructured.Unstructured) bool {
	return hasCondition(crd, func(c map[string]any) bool { return c["type"] == "Established" && c["status"] == "True" })
}

func hasCondition(crd *unstructured.Unstructured, matches func(map[string]any) bool) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool { fields, is := c.(map[string]any); return is && matches(fields) })
}
