package discovery

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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

// ValidateVersion is [Resolver.Validate] for the version of gvr that policy chooses. With FirstOf, an
// inconclusive answer about a version is an error: the next version may be the wrong one.
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
	if res, served := r.narrowly(ctx, gvr); served {
		return res, nil
	}
	return r.Validate(ctx, gvr)
}
