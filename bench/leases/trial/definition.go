package trial

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// definition is a CRD of this benchmark's, by its number.
type definition int

func (d definition) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "leases.example.com", Version: "v1", Resource: fmt.Sprintf("parcel%ds", int(d))}
}

func (d definition) kind() string { return fmt.Sprintf("Parcel%d", int(d)) }

func (d definition) name() string { return d.gvr().GroupResource().String() }

// crd returns the CRD.
func (d definition) crd() *unstructured.Unstructured {
	gvr := d.gvr()
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitions.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": d.name()},
		"spec": map[string]any{
			"group": gvr.Group, "scope": "Namespaced",
			"names": map[string]any{
				"plural": gvr.Resource, "singular": fmt.Sprintf("parcel%d", int(d)), "kind": d.kind(), "listKind": d.kind() + "List",
			},
			"versions": []any{map[string]any{
				"name": gvr.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// create creates objects of the type, from number first on until there are n.
func (d definition) create(ctx context.Context, client dynamic.Interface, first, n int) error {
	gvr := d.gvr()
	for i := first; i < n; i++ {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gvr.GroupVersion().String(), "kind": d.kind(),
			"metadata": map[string]any{"name": fmt.Sprintf("parcel-%d", i)},
			"spec":     map[string]any{"weight": int64(i), "to": "somebody"},
		}}
		if _, err := client.Resource(gvr).Namespace("default").Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create object %d: %w", i, err)
		}
	}
	return nil
}
