package sharding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/sharding"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// connection is how a member reaches the server.
type connection struct {
	cluster.Connection

	// Changes changes the first objects. The process that has started the server sends the writes, so that they
	// take no CPU time of members.
	Changes stub.Client `json:"changes"`
	// Slots are the slots of the objects, by their numbers.
	Slots []int `json:"slots"`
}

// count returns the number of objects in slots among the first n ones.
func (c connection) count(slots sharding.Slots, n int) (count int) {
	for _, slot := range c.Slots[:n] {
		if slots.Has(slot) {
			count++
		}
	}
	return count
}

// start starts an embedded server and creates the objects. The connection is a connection.
func (l load) start(ctx context.Context, progress io.Writer) (any, func() error, error) {
	server := cluster.Server{Name: cluster.Embedded, Gates: map[string]bool{"ShardedListAndWatch": l.selects}}
	started, stop, err := server.Start(ctx, progress)
	if err != nil {
		return nil, nil, err
	}
	c := connection{Connection: started.(cluster.Connection), Slots: make([]int, l.objects)}
	w, err := l.newWriter(c)
	if err == nil {
		err = w.fill(ctx, c)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("fill the server: %w", err), stop())
	}
	changes := httptest.NewServer(w)
	c.Changes.Host = changes.URL
	return c, func() error { changes.Close(); return stop() }, nil
}

// writer creates and changes the objects.
type writer struct {
	load

	objects dynamic.ResourceInterface
	changes atomic.Int64
}

func (l load) newWriter(c connection) (*writer, error) {
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return nil, err
	}
	return &writer{load: l, objects: client.Resource(l.kind.GVR)}, nil
}

// fill creates the objects and sets their slots in c.
func (w *writer) fill(ctx context.Context, c connection) error {
	if err := embedded.InstallCRDs(ctx, c.Config(), definition(w.kind)); err != nil {
		return err
	}
	return cluster.Each(ctx, len(c.Slots), func(ctx context.Context, i int) error {
		created, err := w.objects.Create(ctx, w.object(i), metav1.CreateOptions{})
		if err == nil {
			c.Slots[i] = sharding.SlotOf(created.GetUID())
		}
		return err
	})
}

// object returns object i without what the server sets.
func (w *writer) object(i int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: w.kind.Object(i)}
	obj.SetUID("")
	obj.SetResourceVersion("")
	obj.SetManagedFields(nil)
	return obj
}

// ServeHTTP changes the number of objects at the end of the path, each once.
func (w *writer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(path.Base(r.URL.Path))
	if err == nil {
		err = cluster.Each(r.Context(), n, func(ctx context.Context, i int) error {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"bench.example.com/change":"%d"}}}`, w.changes.Add(1))
			_, err := w.objects.Patch(ctx, w.object(i).GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
	}
}

// definition returns a CRD of kind, which accepts all fields.
func definition(kind objects.Kind) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": cluster.CRDs.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": kind.GVR.GroupResource().String()},
		"spec": map[string]any{
			"group": kind.GVR.Group, "scope": "Cluster",
			"names": map[string]any{"plural": kind.GVR.Resource, "kind": kind.GVK.Kind, "singular": strings.ToLower(kind.GVK.Kind)},
			"versions": []any{map[string]any{
				"name": kind.GVR.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}
