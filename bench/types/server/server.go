// Package server starts the API servers that programs start on, with their
// CustomResourceDefinitions and objects.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/servers"
	"github.com/gvrkit/gvrkit/test/envtest/controlplane"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// The names of servers.
const (
	Embedded      = "embedded"
	KubeAPIServer = "kube-apiserver"
)

const (
	// writers is how many requests fill a server at a time: a new CRD is served after a second.
	writers = 16
	// settle is how long a server gets for what it does once it has new CRDs, such as
	// OpenAPI documents. In the first two seconds creations are slow, besides.
	settle = 5 * time.Second
)

// Size says what a server has.
type Size struct {
	CRDs int `json:"crds"`
	// SchemaBytes is about how large the schemas of a CRD are.
	SchemaBytes int `json:"schemaBytes"`
	// Objects is how many objects each CRD has.
	Objects int `json:"objects"`
}

// Named returns name if it is that of a server, or an address.
func Named(name string) (string, error) {
	if name != Embedded && name != KubeAPIServer && !strings.Contains(name, "://") {
		return "", fmt.Errorf("no server %q; there are %s and %s, and addresses", name, Embedded, KubeAPIServer)
	}
	return name, nil
}

// Start starts the server called name and fills it. What is at an address runs and is filled
// already.
func Start(ctx context.Context, name string, size Size, progress io.Writer) (s measure.Server, stop func() error, err error) {
	switch name {
	case Embedded:
		s, stop, err = startEmbedded(ctx, progress)
	case KubeAPIServer:
		s, stop, err = startControlPlane(ctx, progress)
	default:
		return measure.Server{Host: name, Discovery: true}, func() error { return nil }, nil
	}
	if err != nil {
		return s, nil, err
	}
	if err := fill(ctx, s, size); err != nil {
		return s, nil, errors.Join(fmt.Errorf("fill it: %w", err), stop())
	}
	return s, stop, nil
}

func startEmbedded(ctx context.Context, progress io.Writer) (measure.Server, func() error, error) {
	server, err := embedded.Start(ctx, embedded.WithProgress(progress))
	if err != nil {
		return measure.Server{}, nil, err
	}
	return measure.Reached(server.Config()), server.Stop, nil
}

func startControlPlane(ctx context.Context, progress io.Writer) (measure.Server, func() error, error) {
	assets, err := controlplane.Assets(ctx, progress)
	if err != nil {
		return measure.Server{}, nil, err
	}
	log.SetLogger(logr.Discard()) // envtest's
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute,
	}
	cfg, err := environment.Start()
	if err != nil {
		return measure.Server{}, nil, errors.Join(err, environment.Stop())
	}
	return measure.Reached(cfg), environment.Stop, nil
}

// fill installs the CRDs and creates the objects.
func fill(ctx context.Context, s measure.Server, size Size) error {
	cfg := s.Config()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	definitions := cluster.Definitions(size.CRDs)
	crds := make([]*unstructured.Unstructured, size.CRDs)
	for i, d := range definitions {
		if crds[i], err = d.CRD(size.SchemaBytes); err != nil {
			return err
		}
	}
	if err := servers.InParallel(ctx, writers, writers, func(ctx context.Context, i int) error {
		return embedded.InstallCRDs(ctx, cfg, crds[i*len(crds)/writers:(i+1)*len(crds)/writers]...)
	}); err != nil {
		return err
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return servers.InParallel(ctx, writers, size.CRDs*size.Objects, func(ctx context.Context, i int) error {
		of := definitions[i/size.Objects].Types[0]
		obj := Object(of, i%size.Objects)
		_, err := client.Resource(of.GVR).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{})
		return err
	})
}

// Object returns the i-th object of a type, of some 800 bytes. What it says is in an
// annotation: of other fields a server drops those that the schema lacks.
func Object(of cluster.Type, i int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(of.GVK)
	obj.SetName(fmt.Sprintf("object-%d", i))
	if of.Namespaced {
		obj.SetNamespace("default")
	}
	obj.SetLabels(map[string]string{"app.kubernetes.io/name": of.GVR.Resource, "app.kubernetes.io/instance": fmt.Sprint(i)})
	obj.SetAnnotations(map[string]string{"bench.example.com/text": strings.Repeat(of.GVK.String()+" ", 8)})
	return obj
}
