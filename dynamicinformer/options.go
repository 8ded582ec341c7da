package dynamicinformer

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
)

// Option configures a Factory and, through it, all its informers. Every
// combination of options is valid; of the same option given twice the last one
// counts; a nil Option has no effect.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	namespace     string
	tweak         TweakListOptionsFunc
	transform     cache.TransformFunc
	indexers      cache.Indexers
	defaultResync time.Duration
	customResync  map[schema.GroupVersionResource]time.Duration
	resolver      *discovery.Resolver
	client        []ClientOption
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

// WithNamespace limits all informers to namespace. The default is all namespaces.
// With discovery, informers on cluster-scoped resources ignore it; without, such
// a resource is asked for in a place where no server has it.
func WithNamespace(namespace string) Option {
	return optionFunc(func(o *options) { o.namespace = namespace })
}

// WithTweakListOptions lets tweak change the options of every list and watch
// request before it leaves, to set selectors for example. It is called in several
// goroutines at a time. Nil changes nothing.
func WithTweakListOptions(tweak TweakListOptionsFunc) Option {
	return optionFunc(func(o *options) { o.tweak = tweak })
}

// WithTransform sets the informers' cache.TransformFunc, which may change each
// object before it is stored. It can be called twice for one object, so that it
// must accept its own output, and with a cache.DeletedFinalStateUnknown.
func WithTransform(transform cache.TransformFunc) Option {
	return optionFunc(func(o *options) { o.transform = transform })
}

// WithIndexers adds indexers to each informer's cache, besides the one by
// namespace that all have. The name of that one, cache.NamespaceIndex, is taken.
func WithIndexers(indexers cache.Indexers) Option {
	indexers = maps.Clone(indexers)
	return optionFunc(func(o *options) { o.indexers = indexers })
}

// WithDefaultResync sets the period in which handlers get every cached object
// once more as an update. It causes no requests. Zero or less, the default, means
// never.
func WithDefaultResync(period time.Duration) Option {
	return optionFunc(func(o *options) { o.defaultResync = period })
}

// WithCustomResync sets the resync period of single resources, in place of the
// default one. Zero or less means never.
func WithCustomResync(periods map[schema.GroupVersionResource]time.Duration) Option {
	periods = maps.Clone(periods)
	return optionFunc(func(o *options) { o.customResync = periods })
}

// WithDiscovery makes the factory ask resolver about each resource before the
// first request for it leaves: whether it is served, supports list and watch, and
// has namespaces. A resource that is refused is parked and asked about again,
// with back-off from one second to thirty. Nil, the default of [New], turns
// that off: what can't be listed is then found out by listing.
func WithDiscovery(resolver *discovery.Resolver) Option {
	return optionFunc(func(o *options) { o.resolver = resolver })
}

// WithClientOptions says how the client that NewForConfig makes decodes. It has no
// effect on New, which is given a client. May be given more than once.
func WithClientOptions(opts ...ClientOption) Option {
	opts = slices.Clone(opts)
	return optionFunc(func(o *options) { o.client = append(o.client, opts...) })
}

// resyncOf returns the resync period of gvr's informer; zero means never.
func (o *options) resyncOf(gvr schema.GroupVersionResource) time.Duration {
	if period, ok := o.customResync[gvr]; ok {
		return period
	}
	return o.defaultResync
}

// allIndexers returns a fresh map: the informer keeps and extends it.
func (o *options) allIndexers() cache.Indexers {
	all := cache.Indexers{}
	maps.Copy(all, o.indexers)
	all[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	return all
}

// config returns how the informer of gvr is fed.
func (o *options) config(client dynamic.Interface, gvr schema.GroupVersionResource) source.Config {
	return source.Config{Client: client, GVR: gvr, Namespace: o.namespace, Tweak: o.tweak}
}

// namespaceText says where requests go, for error texts.
func namespaceText(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "at cluster scope"
	}
	return "in namespace " + namespace
}
