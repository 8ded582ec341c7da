package discovery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/internal/redirect"
	"github.com/gvrkit/gvrkit/internal/singleflight"
)

// informerVerbs are the verbs that an informer requires.
var informerVerbs = []string{"list", "watch"}

// Resolver answers questions about the resources of one API server. While [Resolver.Run] runs, it
// answers from memory, and sends requests only for unknown resources. Otherwise it sends requests for
// each question. Concurrent callers with the same question share a request. A Resolver is safe for
// concurrent use.
type Resolver struct {
	server  server
	options options

	documents   singleflight.Group[scope, func() *snapshot]
	versions    singleflight.Group[schema.GroupVersion, versionDoc]
	definitions singleflight.Group[string, *crd]
	metas       singleflight.Group[struct{}, map[string]*slimMeta]
	unknown     flowcontrol.RateLimiter // of requests of a run about unknown resources

	// current is the snapshot of the run; nil if there is no run, or no snapshot yet.
	current atomic.Pointer[snapshot]

	// mu guards the fields below. It is not held during a request, a channel operation that may
	// block, or a subscriber's code.
	mu            sync.Mutex
	asked         uint64        // the number of requests for documents so far
	doc           *document     // the last document, with the last known resources of what failed
	docAt         uint64        // the number of its request
	plainDoc      *document     // the last document without a run
	plainSnapshot *snapshot     // of plainDoc
	live          *live         // the run; nil while Run does not run
	running       chan struct{} // closed while Run runs
	last          *snapshot     // the last one that was published, also after the run
	unreported    bool          // last is of a narrow run: programs do not have its events
	wanted        map[schema.GroupResource]*want
	ended         map[scoped]time.Time // when a type was removed, or got another scope, a short time ago
	denied        map[question]denial
	noticed       uint64        // the number of changes that runs have noticed
	changed       chan struct{} // closed when current changes
	queues        map[*eventQueue]bool

	answers answers
}

// NewForConfig returns a resolver for the server of cfg. It does no I/O and starts nothing.
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

// NewForConfigAndClient returns a resolver for the server of cfg, which sends its requests through
// client. It does no I/O and starts nothing. It obeys cfg.RateLimiter, and ignores cfg.QPS and
// cfg.Burst. A redirect to another server is an error, unless client has a CheckRedirect.
func NewForConfigAndClient(cfg *rest.Config, client *http.Client, opts ...Option) (*Resolver, error) {
	if cfg == nil || client == nil {
		return nil, errors.New("discovery: the rest.Config or the http.Client is nil")
	}
	endpoint, err := newEndpoint(cfg, redirect.Refuse(client))
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	watched, err := newMetadataClient(cfg, endpoint.client, endpoint)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	return newResolver(&restServer{endpoint: endpoint, metadata: watched}, opts), nil
}

// NewFromDiscovery returns a resolver that calls client. It is meant for client-go's fakes: it has no
// watches, and does not obey Retry-After. If client has a cache, the answers are as old as the cache. If
// the methods of client have no context, calls do not end with the caller's context.
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

// Resolve returns the resource that ref names. The name is a plural, singular, short name or kind, alone
// or followed by a group, or by a version and a group, or in one of the forms with a slash (see
// [ParseRef]). Upper and lower case are equal. Without a version, the result is in the preferred version,
// among those that have the resource.
//
// The group may be a prefix, as in kubectl: proxies.config is proxies.config.openshift.io, unless there
// is a group config with the resource proxies.
//
// If a name is one form of one resource and another form of another, the first form in this order decides:
// plural, singular, short name, kind. kubectl, too, prefers plurals and singulars to short names, and these
// to kinds. If a name matches resources of several groups, and the first of these groups in the server's
// order is a group of Kubernetes itself, Resolve takes the resource of that group, as kubectl does.
// Otherwise the name is ambiguous.
//
// While the resolver runs, a known resource needs no request. An unknown resource needs one conditional
// request, unless the same question was asked since the last change. If CRDs or APIServices can't be
// watched, the answer is kept only for 2 s (10 s without aggregated discovery). Concurrent callers share the
// request. After a burst of 300, callers wait: there are at most 50 such requests per second. If the
// resolver does not run, Resolve sends two requests. On a server without aggregated discovery, it sends
// one for each group version.
//
// After two failures in a row, the next request is sent after a pause, which increases to a second.
// Until then, the answer is the last error.
//
// Errors are [*RefError], [*NotServedError], [*NotEstablishedError], [*AmbiguousError], and
// [*InconclusiveError] if the server, or a group that may have the resource, does not respond and was
// not known before. If a resource is found, groups that do not respond do not matter.
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

// ResolveGVR returns the resource that is served as gvr. If the resolver does not run and the
// resource is served, ResolveGVR sends one request, and the result does not have the other
// versions.
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

// ResolveGR returns the resource gr in the preferred version. The errors are those of Resolve.
func (r *Resolver) ResolveGR(ctx context.Context, gr schema.GroupResource) (Resource, error) {
	if err := checkParts(RefOf(gr.WithVersion("")), false); err != nil {
		return Resource{}, err
	}
	return r.answers.counted(r.answer(ctx, questionOfGVR(gr.WithVersion(""))))
}

// ResolveGVK returns the resource whose objects have the kind gvk. Kinds are case-sensitive. The errors
// are those of Resolve; those for which meta.IsNoMatchError holds unwrap to a *meta.NoKindMatchError.
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

// ResolveGK is ResolveGVK for the preferred version.
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

// Validate returns the resource that is served as gvr if it supports verbs. The default verbs are list
// and watch. Validate does not check the permissions of the user.
//
// If the resolver does not run, Validate sends one request for a served resource. For any other
// resource, it also requests all documents: for suggestions, and because one response with status
// code 404 is not conclusive. It may be temporary, or the address may be wrong.
//
// The errors are [*VerbError] and those of Resolve, except [*AmbiguousError].
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

// ValidateVersion is [Resolver.Validate] for the version of gvr that policy chooses. With FirstOf, an
// inconclusive answer about a version is an error: the next version may be the wrong one.
func (r *Resolver) ValidateVersion(ctx context.Context, gvr schema.GroupVersionResource, policy VersionPolicy, verbs ...string) (Resource, error) {
	switch policy.name {
	case followPreferred:
		res, err := r.ResolveGR(ctx, gvr.GroupResource())
		if err != nil {
			return Resource{}, err
		}
		return r.Validate(ctx, res.GVR, verbs...)
	case firstOf:
		var first error
		for version := range strings.SplitSeq(policy.versions, ",") {
			res, err := r.Validate(ctx, gvr.GroupResource().WithVersion(version), verbs...)
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
	return r.Validate(ctx, gvr, verbs...)
}
