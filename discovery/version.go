package discovery

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VersionPolicy says in which version a resource is read, or in which versions a [Selector]
// selects it. It is a value, and policies that say the same are equal. The zero value is [Exact].
type VersionPolicy struct {
	name     string // empty: Exact
	versions string // of FirstOf, in order, joined by commas
}

const (
	followPreferred = "FollowPreferred"
	firstOf         = "FirstOf"
	everyVersion    = "EveryVersion"
)

// Exact is the version that the resource is named with. A selector names none: for it, Exact is
// FollowPreferred.
func Exact() VersionPolicy { return VersionPolicy{} }

// FollowPreferred is the version that the server prefers at the time.
func FollowPreferred() VersionPolicy { return VersionPolicy{name: followPreferred} }

// FirstOf is the first of versions that the server serves at the time. Without versions it is
// Exact.
func FirstOf(versions ...string) VersionPolicy {
	if len(versions) == 0 {
		return Exact()
	}
	return VersionPolicy{name: firstOf, versions: strings.Join(versions, ",")}
}

// EveryVersion is each version that the server serves, for selectors: the objects are the same in
// all of them. For one resource it is Exact.
func EveryVersion() VersionPolicy { return VersionPolicy{name: everyVersion} }

// String returns the policy as it is written, such as "FirstOf(v2, v1)".
func (p VersionPolicy) String() string {
	switch p.name {
	case "":
		return "Exact"
	case firstOf:
		return firstOf + "(" + strings.ReplaceAll(p.versions, ",", ", ") + ")"
	}
	return p.name
}

// MarshalText returns what String does, for JSON.
func (p VersionPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// selects reports whether a selector with p selects res among the versions of its type.
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

// ValidateVersion does what [Resolver.Validate] does, for the version of gvr that policy chooses.
// Under FirstOf, a version that cannot be told is not passed over: a later one may be wrong.
func (r *Resolver) ValidateVersion(ctx context.Context, gvr schema.GroupVersionResource, policy VersionPolicy) (Resource, error) {
	switch policy.name {
	case followPreferred:
		res, err := r.ResolveGR(ctx, gvr.GroupResource())
		if err != nil {
			return Resource{}, err
		}
		return r.Validate(ctx, res.GVR)
	case firstOf:
		var first error
		for version := range strings.SplitSeq(policy.versions, ",") {
			res, err := r.Validate(ctx, gvr.GroupResource().WithVersion(version))
			if err == nil || errors.Is(err, ErrInconclusive) {
				return res, err
			}
			if first == nil {
				first = err
			}
		}
		return Resource{}, first
	}
	return r.Validate(ctx, gvr)
}
