// Package objects generates the objects of scenarios: the same ones in each run, with the JSON of
// an API server.
//
// The objects of kind "ipamblock" have one shape. They are large, with many small maps, and few
// strings occur twice. The objects of kind "mix" resemble those of a cluster with some hundreds of
// applications: they have eleven shapes and many lengths. Labels, images, managers and phrases
// occur in many objects, and hardly any two objects are equal in structure.
package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one kind of objects.
type Kind struct {
	// Name is the name of the kind in results.
	Name string
	GVR  schema.GroupVersionResource
	GVK  schema.GroupVersionKind
	// Object returns a new copy of the object with number i.
	Object func(i int) map[string]any
	// Counter is the last field with this name, an integer that each update on the server
	// increments, like metadata.generation. Objects may lack it.
	Counter string
}

// All returns all kinds.
func All() []Kind {
	calico, example := schema.GroupVersion{Group: "crd.projectcalico.org", Version: "v1"}, schema.GroupVersion{Group: "example.com", Version: "v1"}
	return []Kind{
		{"ipamblock", calico.WithResource("ipamblocks"), calico.WithKind("IPAMBlock"), ipamBlock, "sequenceNumber"},
		{"mix", example.WithResource("widgets"), example.WithKind("Widget"), mixed, "observedGeneration"},
	}
}

// Version returns the resource version of the object with number i before the first update.
// The versions of objects are consecutive, and all have the same number of digits.
func Version(i int) int64 { return 1_000_000_000 + int64(i) }

// FormatVersion formats a resource version.
func FormatVersion(version int64) string { return fmt.Sprintf("%010d", version) }
