package discovery_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

func TestResource_String(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	for want, res := range map[string]discovery.Resource{
		"gizmos.v1.example.com (Gizmo, namespaced)":     {GVR: gv.WithResource("gizmos"), GVK: gv.WithKind("Gizmo"), Namespaced: true},
		"gizmos.v1.example.com (Gizmo, cluster-scoped)": {GVR: gv.WithResource("gizmos"), GVK: gv.WithKind("Gizmo")},
		"gizmos.v1.example.com":                         {GVR: gv.WithResource("gizmos")},
		"nodes.v1 (Node, cluster-scoped)":               {GVR: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Node"}},
	} {
		if got := fmt.Sprint(res); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestResource_HasName(t *testing.T) {
	res := discovery.Resource{GVR: gadgets, GVK: gadgets.GroupVersion().WithKind("GadgetKind"), Singular: "gadget", ShortNames: []string{"gd", "gdt"}}
	for name, want := range map[string]bool{"gadgets": true, "Gadget": true, "gadgetkind": true, "GDT": true, "gadg": false, "": false, "example.org": false} {
		if got := res.HasName(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
