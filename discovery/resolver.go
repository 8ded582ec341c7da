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
// cache, for as long as the cache likes; one without methods that take a context
// lets nobody cut a question short.
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
// among those that serve the resource and could be asked. It costs two requests on
// a server with aggregated discovery, and one for each group version on an older
// one.
//
// Errors are [*RefError], [*NotServedError], [*AmbiguousError], and
// [*InconclusiveError] if the server, or a group that may well serve the resource,
// could not be asked. Once something is found, groups that could not be asked do
// not count: what is ambiguous at other times may then be resolved.
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
// are list and watch if none are given. It costs one request if so. If not, it
// costs a few more: the server is asked for all that it serves, to say what is
// served instead, and since a group version that is not found may be so for a
// moment, or for a wrong address. Unless that bears it out, it is no refusal.
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
		return Resource{}, inconclusive(gvr, err)
	}
	if res, found := findIn(list, gvr); found {
		if err := missingVerbs(res, verbs); err != nil {
			return Resource{}, err
		}
		return res, nil
	}
	served, err := r.catalogue(ctx)
	switch {
	case err == nil:
		return Resource{}, served.refuse(gvr)
	case list != nil && len(list.APIResources) > 0:
		// The group version itself has answered. There are only no suggestions.
		return Resource{}, &NotServedError{Ref: RefOf(gvr)}
	}
	return Resource{}, inconclusive(gvr, err)
}

func inconclusive(gvr schema.GroupVersionResource, err error) error {
	return &InconclusiveError{Ref: RefOf(gvr), Failed: []schema.GroupVersion{gvr.GroupVersion()}, Err: err}
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
