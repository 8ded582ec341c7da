package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// informerVerbs are what an informer needs a resource to support.
var informerVerbs = []string{"list", "watch"}

// Resolver asks one API server what it serves. It is safe for concurrent use.
type Resolver struct {
	server  discovery.DiscoveryInterfaceWithContext
	options options
}

// NewForConfig returns a resolver for the server that cfg reaches. It does no I/O.
func NewForConfig(cfg *rest.Config, opts ...Option) (*Resolver, error) {
	if cfg == nil {
		return nil, errors.New("discovery: the rest.Config is nil")
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	return NewForConfigAndClient(cfg, client, opts...)
}

// NewForConfigAndClient returns a resolver for the server that cfg reaches through
// client, whose connections it shares. It does no I/O.
func NewForConfigAndClient(cfg *rest.Config, client *http.Client, opts ...Option) (*Resolver, error) {
	if cfg == nil || client == nil {
		return nil, errors.New("discovery: the rest.Config or the http.Client is nil")
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	return NewFromDiscovery(server, opts...)
}

// NewFromDiscovery returns a resolver that asks through client. It is meant for
// client-go's fakes. A client that caches makes the resolver answer from that
// cache, for as long as the cache likes.
func NewFromDiscovery(client discovery.DiscoveryInterface, opts ...Option) (*Resolver, error) {
	if client == nil {
		return nil, errors.New("discovery: the DiscoveryInterface is nil")
	}
	return &Resolver{
		server:  discovery.ToDiscoveryInterfaceWithContext(client),
		options: newOptions(opts),
	}, nil
}

// Resolve returns the resource that ref names: plural, plural.group or
// plural.version.group. Without a version it is the one that the group prefers
// among those that serve the resource. It costs two requests on a server with
// aggregated discovery, and one for each group version on an older one.
//
// Errors are [*RefError], [*NotServedError], [*AmbiguousError], and
// [*InconclusiveError] if a group that may well serve the resource, or the
// server, could not be asked.
func (r *Resolver) Resolve(ctx context.Context, ref string) (Resource, error) {
	parsed, err := ParseRef(ref)
	if err != nil {
		return Resource{}, err
	}
	served, err := r.catalogue(ctx)
	if err != nil {
		return Resource{}, &InconclusiveError{Ref: parsed, Err: err}
	}
	return served.resolve(parsed)
}

// Validate returns the resource that is served as gvr if it supports verbs, which
// are list and watch if none are given. It costs one request if so; if not, a
// few more to say what is served instead.
//
// Errors are [*RefError], [*NotServedError], [*VerbError] and
// [*InconclusiveError]. It does not ask whether the user may use the verbs.
func (r *Resolver) Validate(ctx context.Context, gvr schema.GroupVersionResource, verbs ...string) (Resource, error) {
	if err := checkGVR(gvr); err != nil {
		return Resource{}, err
	}
	if len(verbs) == 0 {
		verbs = informerVerbs
	}
	list, err := r.groupVersion(ctx, gvr.GroupVersion())
	if err != nil && !apierrors.IsNotFound(err) {
		return Resource{}, &InconclusiveError{Ref: RefOf(gvr), Failed: []schema.GroupVersion{gvr.GroupVersion()}, Err: err}
	}
	if res, found := findIn(list, gvr); found {
		return res, missingVerbs(res, verbs)
	}
	return Resource{}, r.notServed(ctx, gvr)
}

// notServed adds to a refusal what is served instead. The refusal stands
// without it, so a catalogue that can't be had only makes it terser.
func (r *Resolver) notServed(ctx context.Context, gvr schema.GroupVersionResource) error {
	refusal := &NotServedError{Ref: RefOf(gvr)}
	if served, err := r.catalogue(ctx); err == nil {
		refusal.Versions = served.versions(gvr.GroupResource())
		refusal.Near = served.near(refusal.Ref)
	}
	return refusal
}

// groupVersion asks for the resources of one group version.
func (r *Resolver) groupVersion(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.requestTimeout)
	defer cancel()
	return r.server.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
}

// catalogue asks for everything. Group versions that fail are part of the answer.
func (r *Resolver) catalogue(ctx context.Context) (*catalogue, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.requestTimeout)
	defer cancel()
	groups, lists, err := discovery.ServerGroupsAndResourcesWithContext(ctx, r.server)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, err
	}
	return newCatalogue(groups, lists, failed), nil
}

func findIn(list *metav1.APIResourceList, gvr schema.GroupVersionResource) (Resource, bool) {
	if list == nil {
		return Resource{}, false
	}
	for i := range list.APIResources {
		if in := &list.APIResources[i]; in.Name == gvr.Resource {
			return newResource(gvr.GroupVersion(), in), true
		}
	}
	return Resource{}, false
}
