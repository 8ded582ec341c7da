package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/internal/singleflight"
)

// informerVerbs are what an informer needs a resource to support.
var informerVerbs = []string{"list", "watch"}

// Resolver asks one API server what it serves. While [Resolver.Run] runs it knows, and
// asks only about what it does not know; otherwise each question goes to the server.
// Callers that ask the same at the same time share a request. It is safe for
// concurrent use.
type Resolver struct {
	server  server
	options options

	documents   singleflight.Group[scope, func() *snapshot]
	versions    singleflight.Group[schema.GroupVersion, versionDoc]
	definitions singleflight.Group[string, *crd]
	metas       singleflight.Group[struct{}, map[string]*slimMeta]
	unknown     flowcontrol.RateLimiter // of requests about what a run does not know

	// current is what a run knows; nil while none does.
	current atomic.Pointer[snapshot]

	// mu guards the fields below. It is never held over a request, a channel
	// operation that may block, or a subscriber's code.
	mu      sync.Mutex
	asked   uint64        // requests for documents begun
	doc     *document     // the last that was told, with what earlier ones knew
	docAt   uint64        // by which request
	saidBy  *document     // the last one that a resolver that does not run was told
	said    *snapshot     // what it says
	live    *live         // nil while Run does not run
	running chan struct{} // closed while it does
	last    *snapshot     // what a run knew, also after it, and subscribers were told
	wanted  map[schema.GroupResource]*want
	denied  map[question]error // what current refuses for good
	changed chan struct{}      // closed when current changes
	boxes   map[*mailbox]bool

	answers answers
}

// NewForConfig returns a resolver for the server that cfg reaches. It does no I/O and
// starts nothing.
func NewForConfig(cfg *rest.Config, opts ...Option) (*Resolver, error) {
	if cfg == nil {
		return nil, errors.New("discovery: the rest.Config is nil")
	}
	if cfg.UserAgent == "" {
		cfg = rest.CopyConfig(cfg)
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	return NewForConfigAndClient(cfg, client, opts...)
}

// NewForConfigAndClient returns a resolver for the server that cfg reaches through
// client, whose connections it shares. It does no I/O and starts nothing. Of cfg's
// limits on the rate of requests, a RateLimiter is obeyed; QPS and Burst are for
// clients that ask more.
func NewForConfigAndClient(cfg *rest.Config, client *http.Client, opts ...Option) (*Resolver, error) {
	if cfg == nil || client == nil {
		return nil, errors.New("discovery: the rest.Config or the http.Client is nil")
	}
	endpoint, err := newEndpoint(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	watched, err := newMetadataClient(cfg, endpoint.client, endpoint)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	return newResolver(&restServer{endpoint: endpoint, metadata: watched}, opts), nil
}

// NewFromDiscovery returns a resolver that asks through client. It is meant for
// client-go's fakes: it has no watch, and does not learn when the server wants to be
// asked again. A client that caches makes the resolver answer from that cache, for as
// long as the cache likes; one without methods that take a context lets nobody cut a
// question short.
func NewFromDiscovery(client discovery.DiscoveryInterface, opts ...Option) (*Resolver, error) {
	if client == nil {
		return nil, errors.New("discovery: the DiscoveryInterface is nil")
	}
	return newResolver(&adapter{client: discovery.ToDiscoveryInterfaceWithContext(client)}, opts), nil
}

func newResolver(s server, opts []Option) *Resolver {
	r := &Resolver{server: s, options: newOptions(opts), changed: make(chan struct{}), running: make(chan struct{})}
	r.unknown = flowcontrol.NewTokenBucketRateLimiter(r.options.unknownRate, r.options.unknownBurst)
	r.documents.Timeout = r.options.requestTimeout
	r.versions.Timeout = r.options.requestTimeout
	r.definitions.Timeout = r.options.requestTimeout
	r.metas.Timeout = r.options.requestTimeout
	return r
}

// Resolve returns the resource that ref names: by plural, singular, short name or
// kind, in any case, alone or followed by a group, or a version and a group, or in one of
// the forms with a slash that [ParseRef] describes. Without a version it is the one that the
// server prefers among those that serve the resource.
//
// A group may be cut short, as in kubectl: proxies.config is proxies.config.openshift.io
// unless there is a group config that has proxies.
//
// Where a name is the plural of one resource and the singular, a short name or the
// kind of another, the first of these that fits decides. kubectl, too, takes plurals and
// singulars before short names, and these before kinds. Where a name fits resources of
// several groups, those of Kubernetes itself come first, as in kubectl; otherwise that is
// an error.
//
// While the resolver runs, it costs nothing if the resource is known, and one request,
// a conditional one, if it is not, unless the answer has been given since the last
// change. Callers that ask about unknown names at the same time share it, and there are at
// most 50 such requests a second after a burst of 300: the caller waits for its turn.
// Otherwise it costs two. On a server without aggregated discovery it costs one
// for each group version.
//
// What has failed twice in a row is asked again after a pause that grows to a second;
// until then the answer is the last error.
//
// Errors are [*RefError], [*NotServedError], [*NotEstablishedError],
// [*AmbiguousError], and [*InconclusiveError] if the server, or a group that may well
// serve the resource, could not be asked and is not known from before. Once something
// is found, groups that could not be asked do not count.
func (r *Resolver) Resolve(ctx context.Context, ref string) (Resource, error) {
	c := r.current.Load()
	if c != nil {
		if res, known := c.memo.get(ref); known {
			r.answers.served.Add(1)
			return res, nil
		}
	}
	q, err := parseQuestion(ref)
	if err != nil {
		return Resource{}, err
	}
	res, err := r.answers.counted(r.answer(ctx, q))
	if err == nil && c != nil && c == r.current.Load() {
		c.memo.put(ref, res)
	}
	return res, err
}

// ResolveGVR returns the resource that is served as gvr. While the resolver does not
// run it costs one request if so, which tells nothing of other versions.
func (r *Resolver) ResolveGVR(ctx context.Context, gvr schema.GroupVersionResource) (Resource, error) {
	if c := r.current.Load(); c != nil {
		if res := c.served(gvr); res != nil {
			r.answers.served.Add(1)
			return *res, nil
		}
	}
	if err := CheckGVR(gvr); err != nil {
		return Resource{}, err
	}
	return r.answers.counted(r.answer(ctx, questionOfGVR(gvr)))
}

// ResolveGR returns the resource gr in the version that the server prefers. Errors are
// those of Resolve.
func (r *Resolver) ResolveGR(ctx context.Context, gr schema.GroupResource) (Resource, error) {
	if err := checkParts(RefOf(gr.WithVersion("")), false); err != nil {
		return Resource{}, err
	}
	return r.answers.counted(r.answer(ctx, questionOfGVR(gr.WithVersion(""))))
}

// ResolveGVK returns the resource whose objects are of gvk. Capitals count. Errors are
// those of Resolve; to meta.IsNoMatchError it is a kind that matches nothing.
func (r *Resolver) ResolveGVK(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	if c := r.current.Load(); c != nil && gvk.Version != "" {
		if res := c.ofKind(gvk); res != nil {
			r.answers.served.Add(1)
			return *res, nil
		}
	}
	q := questionOfGVK(gvk)
	if err := checkParts(q.ref, true); err != nil {
		return Resource{}, err
	}
	return r.answers.counted(r.answer(ctx, q))
}

// ResolveGK is ResolveGVK for the version that the server prefers.
func (r *Resolver) ResolveGK(ctx context.Context, gk schema.GroupKind) (Resource, error) {
	if c := r.current.Load(); c != nil {
		if res := c.ofKind(gk.WithVersion("")); res != nil {
			r.answers.served.Add(1)
			return *res, nil
		}
	}
	q := questionOfGVK(gk.WithVersion(""))
	if err := checkParts(q.ref, false); err != nil {
		return Resource{}, err
	}
	return r.answers.counted(r.answer(ctx, q))
}

// Validate returns the resource that is served as gvr if it supports verbs, which
// are list and watch if none are given. It does not ask whether the user may use the
// verbs.
//
// While the resolver does not run it costs one request if so. If not, it costs a few
// more: the server is asked for all that it serves, to say what is served instead, and
// since a group version that is not found may be so for a moment, or for a wrong
// address. Unless that bears it out, it is no refusal.
//
// Errors are [*VerbError] and those of Resolve, but for [*AmbiguousError].
func (r *Resolver) Validate(ctx context.Context, gvr schema.GroupVersionResource, verbs ...string) (Resource, error) {
	res, err := r.ResolveGVR(ctx, gvr)
	if err != nil {
		return Resource{}, err
	}
	if len(verbs) == 0 {
		verbs = informerVerbs
	}
	if err := missingVerbs(res, verbs); err != nil {
		return Resource{}, err
	}
	return res, nil
}
