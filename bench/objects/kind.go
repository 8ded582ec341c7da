package objects

import (
	"embed"
	"fmt"
	"strings"

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

	crd string
}

//go:embed crds/*.yaml
var crds embed.FS

// CRD returns the manifest of the kind's CustomResourceDefinition.
func (k Kind) CRD() ([]byte, error) { return crds.ReadFile("crds/" + k.crd) }

// Path returns the path under which a server has the objects of all namespaces.
func (k Kind) Path() string {
	return "/apis/" + k.GVR.Group + "/" + k.GVR.Version + "/" + k.GVR.Resource
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
			crd:     "ipamblocks.yaml",
		},
		{
			Name:       "mix",
			GVR:        schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
			GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"},
			Namespaced: true,
			Object:     mixed,
			Counter:    []string{"status", "observedGeneration"},
			crd:        "widgets.yaml",
		},
	}
}

// Names returns the names of all kinds.
func Names() []string {
	var names []string
	for _, k := range All() {
		names = append(names, k.Name)
	}
	return names
}

// Named returns the kind called name.
func Named(name string) (Kind, error) {
	for _, k := range All() {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("no kind %q; there are %s", name, strings.Join(Names(), ", "))
}
