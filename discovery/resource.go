package discovery

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is what a server said of one resource in one version. It is a value:
// it holds no connection and does not change when the server does. Its slices
// may be shared between copies and are read-only.
type Resource struct {
	// GVR is the resource's group, version and plural name.
	GVR schema.GroupVersionResource
	// GVK is the group, version and kind of its objects. A few built-in
	// resources have objects of another group than their own.
	GVK schema.GroupVersionKind
	// Singular is the singular name; empty if the server does not tell.
	Singular string
	// ShortNames are the abbreviations, such as "po".
	ShortNames []string
	// Categories are the groups of resources it is in, such as "all".
	Categories []string
	// Namespaced says whether its objects live in namespaces.
	Namespaced bool
	// Verbs are what the type allows: list, watch, get, create, …. Whether the
	// user may is another question, which only the request itself answers.
	Verbs []string
}

// Supports reports whether verb is among the resource's verbs.
func (r Resource) Supports(verb string) bool { return slices.Contains(r.Verbs, verb) }

// newResource reads an entry of a resource list of gv. The entry's own group and
// version, where set, are those of its kind.
func newResource(gv schema.GroupVersion, in *metav1.APIResource) Resource {
	kind := gv.WithKind(in.Kind)
	if in.Group != "" {
		kind.Group = in.Group
	}
	if in.Version != "" {
		kind.Version = in.Version
	}
	return Resource{
		GVR:        gv.WithResource(in.Name),
		GVK:        kind,
		Singular:   in.SingularName,
		ShortNames: in.ShortNames,
		Categories: in.Categories,
		Namespaced: in.Namespaced,
		Verbs:      in.Verbs,
	}
}
