package dynamicinformer

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// VersionPolicy says in which version a resource is listed and watched. The zero value
// is [Exact].
type VersionPolicy struct {
	preferred bool
	first     string // the versions, in order, joined by commas
}

// Exact is the version of the GVR that was asked for. While it is not served, though
// others are, the informer waits for it and keeps its cache: the objects are still there.
func Exact() VersionPolicy { return VersionPolicy{} }

// FollowPreferred is the version that the server prefers, at any time. When that changes,
// the informer goes over to the new one: the same objects under the same keys, each an
// update, and none is deleted or added for it. It needs discovery; without, it is Exact.
func FollowPreferred() VersionPolicy { return VersionPolicy{preferred: true} }

// FirstOf is the first of versions that the server serves, at any time, with the same
// hand-over as FollowPreferred. It needs discovery; without, or without versions, it is Exact.
func FirstOf(versions ...string) VersionPolicy {
	return VersionPolicy{first: strings.Join(slices.Clone(versions), ",")}
}

func (p VersionPolicy) String() string {
	switch {
	case p.preferred:
		return "FollowPreferred"
	case p.first != "":
		return "FirstOf(" + strings.ReplaceAll(p.first, ",", ", ") + ")"
	}
	return "Exact"
}

// compare orders policies by what they are called.
func (p VersionPolicy) compare(other VersionPolicy) int {
	switch {
	case p.preferred == other.preferred:
		return strings.Compare(p.first, other.first)
	case p.preferred:
		return 1
	}
	return -1
}

// resolve asks which resource gvr is, under p.
func (p VersionPolicy) resolve(ctx context.Context, resolver *discovery.Resolver, gvr schema.GroupVersionResource) (discovery.Resource, error) {
	switch {
	case p.preferred:
		res, err := resolver.ResolveGR(ctx, gvr.GroupResource())
		if err != nil {
			return discovery.Resource{}, err
		}
		return resolver.Validate(ctx, res.GVR)
	case p.first != "":
		var first error
		for version := range strings.SplitSeq(p.first, ",") {
			res, err := resolver.Validate(ctx, gvr.GroupResource().WithVersion(version))
			if err == nil || errors.Is(err, discovery.ErrInconclusive) {
				return res, err // another version may be the wrong one
			}
			if first == nil {
				first = err
			}
		}
		return discovery.Resource{}, first
	}
	return resolver.Validate(ctx, gvr)
}
