package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/informermetrics"
)

// Option configures a Factory and, through it, all its informers. Every combination of options is
// valid; of the same option given twice the last one counts; a nil Option has no effect. A value
// that no server accepts is an [*OptionError] of the function that the option is given to.
type Option interface{ apply(*options) }

// LeaseOption configures one lease and its informer. An option that a factory can have too replaces
// the factory's. Every combination is valid; of the same option given twice the last one counts; a
// nil LeaseOption has no effect.
type LeaseOption interface{ applyToLease(*leaseOptions) }

// InformerOption is an option of a factory and of single leases. That of the factory holds for all
// informers that have none of their own.
type InformerOption interface {
	Option
	LeaseOption
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type leaseOptionFunc func(*leaseOptions)

func (f leaseOptionFunc) applyToLease(o *leaseOptions) { f(o) }

type informerOptionFunc func(*settings)

func (f informerOptionFunc) apply(o *options)             { f(&o.settings) }
func (f informerOptionFunc) applyToLease(o *leaseOptions) { f(&o.settings) }

type options struct {
	settings
	resolver   *discovery.Resolver
	client     []dynamicclient.Option
	identities *informermetrics.Identities // nil: no metrics
}

func newOptions(opts ...Option) options {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// WithDiscovery makes the factory ask resolver about each resource before the first request for it:
// whether it is served, supports list and watch, and has namespaces. While an informer of the factory
// runs, the factory runs the resolver, unless the program does, and follows the changes of each type:
// see [Factory]. Nil, the default of [New], turns discovery off: then only requests show whether a
// type can be listed, and no type is ever taken to be gone.
func WithDiscovery(resolver *discovery.Resolver) Option {
	return optionFunc(func(o *options) { o.resolver = resolver })
}

// WithClientOptions sets how the client that NewForConfig makes decodes. It has no effect on New,
// which is given a client. It may be given more than once.
func WithClientOptions(opts ...dynamicclient.Option) Option {
	opts = slices.Clone(opts)
	return optionFunc(func(o *options) { o.client = append(o.client, opts...) })
}

// WithNamespace limits informers to namespace. The default is all namespaces. A namespace that is not
// a valid name is an [*OptionError]. With discovery, informers on cluster-scoped resources ignore the
// namespace; without, requests for such a resource fail.
func WithNamespace(namespace string) InformerOption {
	return informerOptionFunc(func(s *settings) { s.namespace = namespace })
}

// WithTweakListOptions lets tweak change the options of every list and watch
// request before it leaves, to set selectors for example. It is called in several
// goroutines at a time. Nil changes nothing.
func WithTweakListOptions(tweak TweakListOptionsFunc) InformerOption {
	return informerOptionFunc(func(s *settings) { s.tweak = tweak })
}

// WithLabelSelector limits informers to objects whose labels match selector. A selector that can't be
// parsed is an [*OptionError]. [WithTweakListOptions] is applied after it.
func WithLabelSelector(selector string) InformerOption {
	return informerOptionFunc(func(s *settings) { s.labels = selector })
}

// WithFieldSelector limits informers to objects whose fields match selector. Custom resources can be
// selected by metadata.name, metadata.namespace and the selectable fields of the CRD: another field
// is [status.ReasonBadRequest]. A selector that can't be parsed is an [*OptionError].
// [WithTweakListOptions] is applied after it.
func WithFieldSelector(selector string) InformerOption {
	return informerOptionFunc(func(s *settings) { s.fields = selector })
}

// WithTransform sets the informers' cache.TransformFunc, which may change each
// object before it is stored. It can be called twice for one object, so that it
// must accept its own output, and with a cache.DeletedFinalStateUnknown.
func WithTransform(transform cache.TransformFunc) InformerOption {
	return informerOptionFunc(func(s *settings) { s.transform = transform })
}

// WithIndexers adds indexers to each informer's cache, besides the one by
// namespace that all have. The name of that one, cache.NamespaceIndex, is taken. A lease
// adds them to the informer that it shares.
func WithIndexers(indexers cache.Indexers) InformerOption {
	indexers = maps.Clone(indexers)
	return informerOptionFunc(func(s *settings) { s.indexers = indexers })
}

// WithWatchErrorHandler passes the errors after which a list or watch is tried again to handler
// instead of the log. It is called in a goroutine of the informer, which continues when it returns.
func WithWatchErrorHandler(handler cache.WatchErrorHandlerWithContext) InformerOption {
	return informerOptionFunc(func(s *settings) { s.onError = handler })
}

// WithResync sets the period in which handlers get every cached object once more as an update,
// give or take a tenth, so that informers do not all do so at the same time. It causes no requests.
// Zero or less, the default, means never.
func WithResync(period time.Duration) InformerOption {
	return informerOptionFunc(func(s *settings) { s.resync, s.jitter = max(0, period), true })
}

// withExactResync sets the period without a difference between informers, as client-go does.
func withExactResync(period time.Duration) Option {
	return optionFunc(func(o *options) { o.resync, o.jitter = period, false })
}

// RemovalPolicy is what an informer does with its cache when there is evidence that its type is gone.
type RemovalPolicy int

// The removal policies.
const (
	// EmitDeletes empties the cache: handlers get the deletion of each object, with its last state.
	EmitDeletes RemovalPolicy = iota
	// KeepCache keeps the cache, and the status says since when it is stale. When the type is back,
	// handlers get the differences; if it is another type of the same name, all objects are deleted
	// first.
	KeepCache
)

func (p RemovalPolicy) String() string {
	if p == KeepCache {
		return "KeepCache"
	}
	return "EmitDeletes"
}

// WithRemovalPolicy sets what happens to the cache when the type is gone. The default is EmitDeletes.
func WithRemovalPolicy(policy RemovalPolicy) InformerOption {
	return informerOptionFunc(func(s *settings) { s.removal = policy })
}

// WatchListPolicy says whether informers begin with a watch that begins with the list
// (KEP-3157), instead of a list and a watch.
type WatchListPolicy int

// The watch-list policies.
const (
	// WatchListAuto: where client-go would, except for types that an aggregated API server serves, as
	// far as discovery knows, and for types whose watch-list has stalled within the last hour.
	WatchListAuto WatchListPolicy = iota
	// WatchListNever: they list and watch.
	WatchListNever
	// WatchListAnywhere: also for types that an aggregated API server serves.
	WatchListAnywhere
)

func (p WatchListPolicy) String() string {
	switch p {
	case WatchListNever:
		return "WatchListNever"
	case WatchListAnywhere:
		return "WatchListAnywhere"
	}
	return "WatchListAuto"
}

// WithWatchListPolicy says when watch-lists are tried. The default is WatchListAuto. One
// that fails is followed by a list in any case.
func WithWatchListPolicy(policy WatchListPolicy) InformerOption {
	return informerOptionFunc(func(s *settings) { s.watchList = policy })
}

// WithPageSize sets how many objects a page of a list has at most. Zero or less, the
// default, is client-go's, 500. Watch-lists have no pages.
func WithPageSize(objects int64) InformerOption {
	return informerOptionFunc(func(s *settings) { s.pageSize = max(0, objects) })
}

// WithAllowAbsent makes [Factory.Acquire] succeed for a type that is not served, or if discovery
// can't tell: the informer waits for the type.
func WithAllowAbsent() LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.absent = true })
}

// WithSeparateInformer gives the lease an informer of its own, with its own cache and watch. Leases
// that share an informer must have the same options.
func WithSeparateInformer() LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.separate = true })
}

// WithLinger keeps the informer for d after the release of its last lease, so that the next lease can
// share it. Of several leases the longest linger counts. Less than zero, like the default, is zero.
func WithLinger(d time.Duration) LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.linger = d })
}

// WithLeaseName names the owner of the lease, for [Factory.Status] and [Factory.Explain]. Several
// leases may have one name; the default is none.
func WithLeaseName(name string) LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.name = name })
}

// WithVersionPolicy sets in which version the resource is listed and watched. Leases with
// different policies do not share an informer.
//
// The default is [discovery.Exact]: while that version is not served, though others are, the
// informer waits for it and keeps its cache, since the objects are still there. Under another
// policy the informer goes over to the version that the policy chooses at the time: the same objects
// under the same keys, each an update, and none is deleted or added. Without discovery every policy
// is Exact. [discovery.EveryVersion] is an [*OptionError].
func WithVersionPolicy(policy discovery.VersionPolicy) LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.versions = policy })
}

// ErrInvalidOption is matched by every [*OptionError].
var ErrInvalidOption = errors.New("invalid option")

// OptionError says that an option has a value that no server accepts. It unwraps to what is
// wrong with it.
type OptionError struct {
	// Option is the name of the option, and Value what it was given.
	Option, Value string
	Err           error
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s(%q): %v", e.Option, errtext.Cut(e.Value), e.Err)
}

// Is reports whether target is ErrInvalidOption.
func (e *OptionError) Is(target error) bool { return target == ErrInvalidOption }

// Unwrap returns what is wrong with the value.
func (e *OptionError) Unwrap() error { return e.Err }

// InformerMetricsForgetter is a cache.InformerMetricsProvider with a call for the end of informers.
type InformerMetricsForgetter interface {
	cache.InformerMetricsProvider
	// ForgetInformer is called when no informer with the identity id runs any more. Its
	// metrics are not used after that; when there is one again, new ones are asked for.
	ForgetInformer(id cache.InformerNameAndResource)
}

// WithInformerMetrics lets provider publish client-go's own metrics of each informer, under name
// and the GVR: how many events are queued, how long they take, and the resourceVersion of the
// store. A nil provider means the one that was given to cache.SetInformerMetricsProvider. A nil
// name, the default, means no metrics.
//
// Client-go accepts a name once for each GVR; an informer that comes second has no metrics. So the
// factory uses one identity for all informers on a GVR, the first and those that come after it.
// If two of them run at the same time, since one has not ended yet, has another version policy, or
// is that of [WithSeparateInformer], only the one that began first is published. When it has
// ended, the next one is published, with its last gauge values; earlier latencies are not observed
// again. Provider is asked for metrics when an informer begins to run, which is when its type is
// served. When the last informer on a GVR has ended, ForgetInformer is called if provider is an
// [InformerMetricsForgetter]; otherwise its gauges are set to zero. That has been done when
// Shutdown returns nil.
//
// This does not hold for client-go's process-wide provider, which this package can't call: it is
// asked when an informer is made, all informers on a GVR publish at the same time, so that gauges
// have the value that was set last, and nothing is forgotten before name is released.
//
// Factories can share a name only if they are given the same Option. The owner of name releases
// it, after Shutdown. An informer that its user runs by hand has metrics only if the factory is
// started, too; they then end with the factory.
func WithInformerMetrics(name *cache.InformerName, provider cache.InformerMetricsProvider) Option {
	identities := informermetrics.New(name, provider)
	return optionFunc(func(o *options) { o.identities = identities })
}
