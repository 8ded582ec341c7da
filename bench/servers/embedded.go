package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/gvrkit/gvrkit/bench/measure"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

const (
	// writers is how many requests fill or change a server at a time.
	writers = 8
	// settle is how long after a CRD is there its objects are created slowly.
	settle = 2100 * time.Millisecond
)

// embeddedServer is the real thing, written to by this process.
type embeddedServer struct {
	*embedded.Server

	kind    objects.Kind
	client  dynamic.NamespaceableResourceInterface
	names   []types.NamespacedName
	changes int // made so far
}

func startEmbedded(ctx context.Context, kind objects.Kind, n int) (Server, error) {
	server, err := embedded.Start(ctx)
	if err != nil {
		return nil, err
	}
	s := &embeddedServer{Server: server, kind: kind, names: make([]types.NamespacedName, n)}
	if err := s.prepare(ctx); err != nil {
		_ = s.Stop() // the first error tells more
		return nil, fmt.Errorf("fill the API server: %w", err)
	}
	return s, nil
}

// prepare installs the kind and creates the objects.
func (s *embeddedServer) prepare(ctx context.Context) error {
	manifest, err := s.kind.CRD()
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, &crd.Object); err != nil {
		return err
	}
	if err := s.InstallCRDs(ctx, crd); err != nil {
		return err
	}
	cfg := s.Config()
	cfg.WarningHandler = rest.NoWarnings{} // about finalizers as real controllers have them
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	s.client = client.Resource(s.kind.GVR)
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return InParallel(ctx, writers, len(s.names), s.create)
}

// create creates the object with number i, and then has its managedFields say what
// the object's own do: a creation makes its writer the manager of all fields.
func (s *embeddedServer) create(ctx context.Context, i int) error {
	obj := &unstructured.Unstructured{Object: s.kind.Object(i)}
	managed := obj.GetManagedFields()
	obj.SetManagedFields(nil)
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	s.names[i] = types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	resource := s.client.Namespace(obj.GetNamespace())
	created, err := resource.Create(ctx, obj, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.SetManagedFields(managed)
	_, err = resource.Update(ctx, created, metav1.UpdateOptions{FieldManager: managed[0].Manager})
	return err
}

func (s *embeddedServer) Connection() measure.Server { return measure.Reached(s.Config()) }

func (s *embeddedServer) Change(ctx context.Context, n int) error {
	first := s.changes
	s.changes += n
	return InParallel(ctx, writers, n, func(ctx context.Context, i int) error {
		change := map[string]any{}
		if err := unstructured.SetNestedField(change, int64(1_000_000+first+i), s.kind.Counter...); err != nil {
			return err
		}
		patch, err := json.Marshal(change)
		if err != nil {
			return err
		}
		name := s.names[(first+i)%len(s.names)]
		_, err = s.client.Namespace(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "bench"})
		return err
	})
}
