// Package objects makes the objects that scenarios are run on: deterministic, and encoded as an
// API server encodes them.
//
// Kind "ipamblock" is one shape, large and full of small maps, whose strings seldom repeat. Kind
// "mix" is what a cluster with some hundreds of applications has: eleven shapes of many lengths,
// in which labels, images, managers and phrases come back, and of which hardly any two are alike.
package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one kind of objects to measure with.
type Kind struct {
	// Name is what it is called on the command line and in results.
	Name string
	GVR  schema.GroupVersionResource
	GVK  schema.GroupVersionKind
	// Object returns the object with number i, a fresh one each time.
	Object func(i int) map[string]any
	// Counter is the last field with a whole number that a server's update counts up, besides
	// metadata.generation. Objects may lack it.
	Counter string
}

// All returns the kinds that there are.
func All() []Kind {
	calico, example := schema.GroupVersion{Group: "crd.projectcalico.org", Version: "v1"}, schema.GroupVersion{Group: "example.com", Version: "v1"}
	return []Kind{
		{"ipamblock", calico.WithResource("ipamblocks"), calico.WithKind("IPAMBlock"), ipamBlock, "sequenceNumber"},
		{"mix", example.WithResource("widgets"), example.WithKind("Widget"), mixed, "observedGeneration"},
	}
}

// Named returns the kind called name.
func Named(name string) (Kind, error) {
	for _, k := range All() {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("no kind %q", name)
}

// Version returns the resource version of the object with number i, before any update. Those
// of all objects follow each other, and all have as many digits.
func Version(i int) int64 { return 1_000_000_000 + int64(i) }

// FormatVersion writes a resource version.
func FormatVersion(version int64) string { return fmt.Sprintf("%010d", version) }
