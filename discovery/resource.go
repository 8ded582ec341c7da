package discovery

import (
	"fmt"
	"slices"
	"strings"

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
	// Service is the namespace/name of the Service of the aggregated API server, if that is known.
	Service string
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

// String returns the resource in a few words, such as "widgets.v1.example.com (Widget, namespaced)". A resource of
// which only the GVR is known has no parentheses.
func (r Resource) String() string {
	ref := RefOf(r.GVR).String()
	if r.GVK.Kind == "" {
		return ref
	}
	scope := "cluster-scoped"
	if r.Namespaced {
		scope = "namespaced"
	}
	return fmt.Sprintf("%s (%s, %s)", ref, r.GVK.Kind, scope)
}

// Supports reports whether verb is among the resource's verbs.
func (r Resource) Supports(verb string) bool { return slices.Contains(r.Verbs, verb) }

// HasName reports whether name is the plural, the singular, a short name or the kind of the resource, where upper
// and lower case are equal. Other resources may have the name, too: [Resolver.Resolve] decides what it means.
func (r Resource) HasName(name string) bool {
	equal := func(other string) bool { return strings.EqualFold(name, other) }
	return equal(r.GVR.Resource) || equal(r.Singular) || equal(r.GVK.Kind) || slices.ContainsFunc(r.ShortNames, equal)
}

// sameNames reports whether r and other have the same kind, singular and short names.
func (r Resource) sameNames(other Resource) bool {
	return r.GVK.Kind == other.GVK.Kind && r.Singular == other.Singular && slices.Equal(r.ShortNames, other.ShortNames)
}

// Preferred reports whether this is the preferred version, among those that have the resource. It is
// false if that is not known.
func (r Resource) Preferred() bool {
	return len(r.Versions) > 0 && r.Versions[0] == r.GVR.Version
}

// VersionPolicy is the choice of the version in which a resource is read, or of the versions that a
// [Selector] selects. It is a comparable value. The zero value is [Exact].
type VersionPolicy struct {
	name     string // empty: Exact
	versions string // of FirstOf, in order, joined by commas
}

const (
	followPreferred = "FollowPreferred"
	firstOf         = "FirstOf"
	everyVersion    = "EveryVersion"
)

// Exact is the version of the GVR. For a selector, which has no GVR, it is FollowPreferred.
func Exact() VersionPolicy { return VersionPolicy{} }

// FollowPreferred is the version that the server currently prefers.
func FollowPreferred() VersionPolicy { return VersionPolicy{name: followPreferred} }

// FirstOf is the first of versions that the server currently serves. Without versions it is Exact.
func FirstOf(versions ...string) VersionPolicy {
	if len(versions) == 0 {
		return Exact()
	}
	return VersionPolicy{name: firstOf, versions: strings.Join(versions, ",")}
}

// EveryVersion is each served version, for selectors: the objects are the same in all versions. For one
// resource it is Exact.
func EveryVersion() VersionPolicy { return VersionPolicy{name: everyVersion} }

// String returns the policy as text, such as "FirstOf(v2, v1)".
func (p VersionPolicy) String() string {
	switch p.name {
	case "":
		return "Exact"
	case firstOf:
		return firstOf + "(" + strings.ReplaceAll(p.versions, ",", ", ") + ")"
	}
	return p.name
}

// MarshalText returns the text of String, for JSON.
func (p VersionPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// selects reports whether a selector with the policy p selects the version of res.
func (p VersionPolicy) selects(res *Resource) bool {
	switch {
	case p.name == everyVersion, len(res.Versions) == 0:
		return true
	case p.name == firstOf:
		for version := range strings.SplitSeq(p.versions, ",") {
			if slices.Contains(res.Versions, version) {
				return version == res.GVR.Version
			}
		}
		return false
	}
	return res.Preferred()
}
