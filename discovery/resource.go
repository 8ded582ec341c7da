package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	// Subresources are the names of its subresources, such as "status".
	Subresources []string
	// Versions are the versions in which the server serves the resource, the
	// preferred one first. Empty if only this version was asked about.
	Versions []string
	// Backing is what serves it, where that is known.
	Backing Backing
	// CRDUID is the UID of the CustomResourceDefinition, where that is known. A
	// CRD that was deleted and created again has another.
	CRDUID types.UID
	// Terminating says that the CRD is being deleted: its objects go first.
	Terminating bool
}

// Backing says what serves a resource.
type Backing string

// What serves a resource. It is known to a resolver that runs and may read
// CustomResourceDefinitions and APIServices.
const (
	BackingUnknown    Backing = ""
	BackingCRD        Backing = "CustomResourceDefinition"
	BackingAggregated Backing = "APIService" // another server, behind this one
	BackingBuiltIn    Backing = "BuiltIn"
)

// Supports reports whether verb is among the resource's verbs.
func (r Resource) Supports(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Preferred reports whether this is the version that the server prefers, among
// those that serve the resource. It is false if that is not known.
func (r Resource) Preferred() bool {
	return len(r.Versions) > 0 && r.Versions[0] == r.GVR.Version
}
