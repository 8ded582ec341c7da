// Package objects makes the objects that scenarios are run on: deterministic, and encoded as an
// API server encodes them.
//
// Kind "ipamblock" is one shape, large and full of small maps, whose strings seldom repeat. Kind
// "mix" is what a cluster with some hundreds of applications has: eleven shapes of many lengths,
// in which labels, images, managers and phrases come back, and of which hardly any two are alike.
package objects

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is one kind of objects to measure with.
type Kind struct {
	// Name is what it is called on the command line and in results.
	Name string
	GVR  schema.GroupVersionResource
	GVK  schema.GroupVersionKind
	// Namespaced says whether the objects have namespaces.
	Namespaced bool
	// Object returns the object with number i, a fresh one each time.
	Object func(i int) map[string]any
	// Counter is the path of a whole number that a server's update counts up, besides
	// metadata.generation. Objects may lack it.
	Counter []string
}

// All returns the kinds that there are.
func All() []Kind {
	return []Kind{
		{
			Name:    "ipamblock",
			GVR:     schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"},
			GVK:     schema.GroupVersionKind{Group: "crd.projectcalico.org", Version: "v1", Kind: "IPAMBlock"},
			Object:  ipamBlock,
			Counter: []string{"spec", "sequenceNumber"},
		},
		{
			Name:       "mix",
			GVR:        schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
			GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
			Namespaced: true,
			Object:     mixed,
			Counter:    []string{"status", "observedGeneration"},
		},
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

// Encode returns the JSON of the first n objects of kind, each on one line and with sorted
// keys. It stops when ctx ends.
func Encode(ctx context.Context, kind Kind, n int) ([][]byte, error) {
	all := make([][]byte, n)
	for i := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if all[i], err = json.Marshal(kind.Object(i)); err != nil {
			return nil, fmt.Errorf("object %d of %s: %w", i, kind.Name, err)
		}
	}
	return all, nil
}

// Version returns the resource version of the object with number i, before any update. Those
// of all objects follow each other, and all have as many digits.
func Version(i int) int64 { return 1_000_000_000 + int64(i) }

// FormatVersion writes a resource version.
func FormatVersion(version int64) string { return fmt.Sprintf("%010d", version) }
