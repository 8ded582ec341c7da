package dynamicinformer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// AcquireRef is [Factory.Acquire] for the resource that ref means: a plural, singular, short name or kind, with or without a group and version,
// as [discovery.Resolver.Resolve] takes it. Without a version, the informer reads the preferred version, also after another version has become the
// preferred one. With [WithAllowAbsent], the resource may be unknown: the informer waits until the name has a meaning.
//
// The informer follows the name. It keeps its type until the type is gone, or the name means another type. The other type is another generation: the objects of
// the previous type are deleted from the cache, although they may exist on the server. If the name means several types, or none while the informer's type is still
// served, the cache stays up to date, and the state is Degraded, with [status.ReasonAmbiguous] or another reason. [Lease.Resource] is the present type.
//
// Leases with equal ref share an informer. Leases on the GVR do not share it, since their type can't change. Errors of listers and client-go's metrics have the
// parts of ref instead of the GVR.
//
// Errors are those of Acquire, [ErrNoDiscovery], and a [*discovery.AmbiguousError], also with WithAllowAbsent.
func (f *Factory) AcquireRef(ctx context.Context, ref string, opts ...LeaseOption) (*Lease, error) {
	parts, err := discovery.ParseRef(ref)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: acquire: %w", err)
	}
	if f.options.resolver == nil {
		return nil, ErrNoDiscovery
	}
	return f.acquire(ctx, key{gvr: schema.GroupVersionResource{Group: parts.Group, Version: parts.Version, Resource: parts.Resource}, ref: ref}, opts)
}

// AcquireGVK is [Factory.AcquireRef] for the resource whose objects have the kind gvk. Kinds are case-sensitive.
// With [WithAllowAbsent], no CustomResourceDefinition needs to have the kind yet.
func (f *Factory) AcquireGVK(ctx context.Context, gvk schema.GroupVersionKind, opts ...LeaseOption) (*Lease, error) {
	return f.AcquireRef(ctx, gvk.String(), opts...)
}

// resolve asks the resolver, which must exist, for the type of k or, by name, that which the name means at present, in the
// version that an informer can use.
func (f *Factory) resolve(ctx context.Context, k *key, verbs ...string) (discovery.Resource, error) {
	gvr := k.gvr
	if k.ref != "" {
		res, err := f.options.resolver.Resolve(ctx, k.ref)
		if err != nil {
			return discovery.Resource{}, err
		}
		gvr = res.GVR
	}
	return f.options.resolver.ValidateVersion(typefacts.WithInformers(ctx), gvr, k.versions, verbs...)
}

// resource returns the resource of e at present: its GVR or, by name, the one that the name means.
func (e *entry) resource() schema.GroupVersionResource {
	if e.ref == "" {
		return e.gvr
	}
	return e.state.Snapshot().GVR
}

// ofAllTypes is the result of events for entries by name.
var ofAllTypes schema.GroupResource

// events returns the type whose events may change the type of e.
func (e *entry) events() schema.GroupResource {
	if e.ref != "" {
		return ofAllTypes
	}
	return e.gvr.GroupResource()
}

// resolveOrKeep is resolve for e. If e is by name, and the name does not mean its type alone any more, it returns
// the type beside the error, as long as that is served, or the error of the type if that may be served.
func (f *Factory) resolveOrKeep(ctx context.Context, e *entry, verbs []string) (discovery.Resource, error) {
	res, err := f.resolve(ctx, &e.key, verbs...)
	now := e.state.Snapshot()
	if err == nil || e.ref == "" || errors.Is(err, discovery.ErrInconclusive) || now.Resource().GVK.Kind == "" {
		return res, err
	}
	versions := e.versions
	if e.gvr.Version == "" && versions == discovery.Exact() { // of the name, which has no version
		versions = discovery.FollowPreferred()
	}
	res, failed := f.options.resolver.ValidateVersion(ctx, now.GVR, versions, verbs...) // zero if it fails
	if absent, is := errors.AsType[*discovery.NotServedError](failed); failed != nil && (!is || len(absent.Versions) > 0) {
		err = failed
	}
	return res, err
}

// concerns reports whether event may change the type of e.
func (e *entry) concerns(event discovery.Event) bool {
	return e.ref == "" || event.MayMean(e.gvr.Resource) || event.Resource.GVR.GroupResource() == e.resource().GroupResource()
}
