package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource describes one resource in one version, as the server has listed it. It is a value: it has
// no connection to the server and does not change. Its slices may be shared between copies and are
// read-only.
type Resource struct {
	// GVR is the resource's group, version and plural name.
	GVR schema.GroupVersionResource
	// GVK is the group, version and kind of its objects. The objects of a few built-in resources
	// have another group than the resource.
	GVK schema.GroupVersionKind
	// Singular is the singular name; empty if the server does not send it.
	Singular string
	// ShortNames are the short names, such as "po".
	ShortNames []string
	// Categories are the categories of the resource, such as "all".
	Categories []string
	// Namespaced reports whether its objects are in namespaces.
	Namespaced bool
	// Verbs are the verbs that the resource supports, such as list, watch and get. They do not
	// depend on the permissions of the user.
	Verbs []string
	// Subresources are the names of its subresources, such as "status".
	Subresources []string
	// Versions are the versions in which the server serves the resource, the preferred one first.
	// It is empty if the question was only about this version.
	Versions []string
	// Backing is what serves the resource, if that is known.
	Backing Backing
	// CRDUID is the UID of the CustomResourceDefinition, if that is known. A CRD that was deleted
	// and created again has another UID.
	CRDUID types.UID
	// Terminating reports whether the CRD is being deleted: its objects are deleted first.
	Terminating bool
}

// Backing is what serves a resource.
type Backing string

// The possible backings of a resource. Only a running resolver that may read
// CustomResourceDefinitions and APIServices knows the backing.
const (
	BackingUnknown    Backing = ""
	BackingCRD        Backing = "CustomResourceDefinition"
	BackingAggregated Backing = "APIService" // another server behind the API server
	BackingBuiltIn    Backing = "BuiltIn"
)

// Supports reports whether verb is among the resource's verbs.
func (r Resource) Supports(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Preferred reports whether this is the preferred version, among those that have the resource. It is
// false if that is not known.
func (r Resource) Preferred() bool {
	return len(r.Versions) > 0 && r.Versions[0] == r.GVR.Version
}
