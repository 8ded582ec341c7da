package discovery

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

// RESTMapper returns a view of the resolver as apimachinery's mapper between kinds and resources, for
// example for controller-runtime. Its answers are those of restmapper.NewDiscoveryRESTMapper for the
// resources that are served at the time of the call. It needs no reset: it has new, changed and removed
// types as soon as the resolver has them. The value is also a meta.RESTMapperWithContext.
//
// While [Resolver.Run] runs, the mapper answers from memory, and sends one request for a resource that
// is not served. Otherwise each call sends requests.
//
// If a resource is not served, meta.IsNoMatchError holds for the error, and its text suggests other
// resources. If a part of the server that may serve the resource does not respond, the error is an
// [*InconclusiveError], for which meta.IsNoMatchError does not hold.
func (r *Resolver) RESTMapper() meta.RESTMapper { return mapper{r} }

type mapper struct{ resolver *Resolver }

var _ interface {
	meta.RESTMapper
	meta.RESTMapperWithContext
} = mapper{}

// mapped calls ask with a mapper of the served resources, and counts the answer. The question q has the
// arguments and the method.
func mapped[T any](ctx context.Context, r *Resolver, q question, ask func(meta.RESTMapperWithContext) (T, error)) (T, error) {
	answer, err := tryMapped(ctx, r, q, ask)
	r.answers.count(err)
	return answer, err
}

func tryMapped[T any](ctx context.Context, r *Resolver, q question, ask func(meta.RESTMapperWithContext) (T, error)) (T, error) {
	var none T
	if ctx == nil {
		return none, inconclusive(q.ref, errNilContext)
	}
	// The error for a question without a match has the reason.
	answer := func(c *snapshot) (T, error) {
		found, err := ask(c.mapper())
		if meta.IsNoMatchError(err) {
			return none, c.refuse(q)
		}
		return found, err
	}
	var noticed uint64
	for known := r.known(ctx); known != nil; known = r.current.Load() {
		var refusal error
		if noticed, refusal = r.refused(known, q); refusal != nil {
			return none, refusal
		}
		found, err := answer(known)
		if !isRefusal(err) || r.isFinal(known, q, err) {
			return found, err
		}
		if !r.readChanged(ctx, q, known) {
			break
		}
	}
	fresh, err := r.requestSnapshot(ctx, q, func(c *snapshot) error {
		_, err := answer(c)
		return err
	})
	if err != nil {
		return none, inconclusive(q.ref, err)
	}
	found, err := answer(fresh)
	r.deny(fresh, q, noticed, err)
	return found, err
}

// isRefusal reports whether a new request may have another result than err.
func isRefusal(err error) bool {
	return errors.Is(err, ErrNotServed) || errors.Is(err, ErrInconclusive)
}

// makeMapper returns client-go's mapper of the snapshot.
func (c *snapshot) makeMapper() meta.RESTMapperWithContext {
	var groups []*restmapper.APIGroupResources
	for res := range c.all() {
		if len(groups) == 0 || groups[len(groups)-1].Group.Name != res.GVR.Group {
			groups = append(groups, &restmapper.APIGroupResources{
				Group: metav1.APIGroup{
					Name:             res.GVR.Group,
					PreferredVersion: metav1.GroupVersionForDiscovery{Version: res.GVR.Version},
				},
				VersionedResources: map[string][]metav1.APIResource{},
			})
		}
		group := groups[len(groups)-1]
		version := res.GVR.Version
		if group.VersionedResources[version] == nil {
			group.Group.Versions = append(group.Group.Versions, metav1.GroupVersionForDiscovery{Version: version})
		}
		group.VersionedResources[version] = append(group.VersionedResources[version], metav1.APIResource{
			Name:         res.GVR.Resource,
			SingularName: res.Singular,
			Namespaced:   res.Namespaced,
			Group:        res.GVK.Group,
			Version:      res.GVK.Version,
			Kind:         res.GVK.Kind,
		})
	}
	return restmapper.NewDiscoveryRESTMapperWithContext(groups)
}

// mapping returns the mapping of res.
func mapping(res *Resource) *meta.RESTMapping {
	scope := meta.RESTScopeRoot
	if res.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: res.GVR, GroupVersionKind: res.GVK, Scope: scope}
}

// partial returns the question of a method with a partial resource.
func partial(method string, gvr schema.GroupVersionResource) question {
	return question{ref: RefOf(gvr), form: anyForm, method: method}
}

// ofKind returns the question of a method with a kind and versions.
func ofKind(method string, gk schema.GroupKind, versions []string) question {
	q := questionOfGVK(gk.WithVersion(""))
	q.method = method
	if len(versions) == 1 {
		q.ref.Version = versions[0]
		return q
	}
	for _, version := range versions {
		q.versions += version + ","
	}
	return q
}

// The methods with a context.

func (m mapper) KindForWithContext(ctx context.Context, gvr schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return mapped(ctx, m.resolver, partial("KindFor", gvr), func(to meta.RESTMapperWithContext) (schema.GroupVersionKind, error) {
		return to.KindForWithContext(ctx, gvr)
	})
}

func (m mapper) KindsForWithContext(ctx context.Context, gvr schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return mapped(ctx, m.resolver, partial("KindsFor", gvr), func(to meta.RESTMapperWithContext) ([]schema.GroupVersionKind, error) {
		return to.KindsForWithContext(ctx, gvr)
	})
}

func (m mapper) ResourceForWithContext(ctx context.Context, gvr schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return mapped(ctx, m.resolver, partial("ResourceFor", gvr), func(to meta.RESTMapperWithContext) (schema.GroupVersionResource, error) {
		return to.ResourceForWithContext(ctx, gvr)
	})
}

func (m mapper) ResourcesForWithContext(ctx context.Context, gvr schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return mapped(ctx, m.resolver, partial("ResourcesFor", gvr), func(to meta.RESTMapperWithContext) ([]schema.GroupVersionResource, error) {
		return to.ResourcesForWithContext(ctx, gvr)
	})
}

func (m mapper) RESTMappingWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	// This is the most frequent question, for which client-go's mapper searches all groups. It also has a
	// kind of lists for each kind.
	if c := m.resolver.known(ctx); c != nil && len(versions) <= 1 && !strings.HasSuffix(gk.Kind, "List") {
		version := ""
		if len(versions) == 1 {
			version = versions[0]
		}
		if res := c.ofKind(gk.WithVersion(version)); res != nil && (version != "" || len(versions) == 0) {
			m.resolver.answers.served.Add(1)
			return mapping(res), nil
		}
	}
	return m.slowMapping(ctx, gk, slices.Clone(versions)) // so that the caller's slice can be on its stack
}

func (m mapper) slowMapping(ctx context.Context, gk schema.GroupKind, versions []string) (*meta.RESTMapping, error) {
	return mapped(ctx, m.resolver, ofKind("RESTMapping", gk, versions), func(to meta.RESTMapperWithContext) (*meta.RESTMapping, error) {
		return to.RESTMappingWithContext(ctx, gk, versions...)
	})
}

func (m mapper) RESTMappingsWithContext(ctx context.Context, gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return mapped(ctx, m.resolver, ofKind("RESTMappings", gk, versions), func(to meta.RESTMapperWithContext) ([]*meta.RESTMapping, error) {
		mappings, err := to.RESTMappingsWithContext(ctx, gk, versions...)
		if err == nil && len(mappings) == 0 {
			err = &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
		}
		return mappings, err
	})
}

func (m mapper) ResourceSingularizerWithContext(ctx context.Context, resource string) (string, error) {
	q := partial("ResourceSingularizer", schema.GroupVersionResource{Resource: resource})
	singular, err := mapped(ctx, m.resolver, q, func(to meta.RESTMapperWithContext) (string, error) {
		return to.ResourceSingularizerWithContext(ctx, resource)
	})
	if err != nil {
		return resource, err
	}
	return singular, nil
}

// The methods without a context. They end after the resolver's request timeout.

func (m mapper) KindFor(gvr schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.KindForWithContext(background(), gvr)
}

func (m mapper) KindsFor(gvr schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.KindsForWithContext(background(), gvr)
}

func (m mapper) ResourceFor(gvr schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.ResourceForWithContext(background(), gvr)
}

func (m mapper) ResourcesFor(gvr schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.ResourcesForWithContext(background(), gvr)
}

func (m mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.RESTMappingWithContext(background(), gk, versions...)
}

func (m mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.RESTMappingsWithContext(background(), gk, versions...)
}

func (m mapper) ResourceSingularizer(resource string) (string, error) {
	return m.ResourceSingularizerWithContext(background(), resource)
}

func background() context.Context {
	return context.Background() //nolint:forbidigo // apimachinery's interface has no ctx
}
