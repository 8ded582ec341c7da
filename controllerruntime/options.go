package controllerruntime

import (
	"os"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// defaultSyncPeriod is the period of resyncs without SyncPeriod.
const defaultSyncPeriod = 10 * time.Hour

// Option configures a [Cache], besides cache.Options. Every combination is valid. A nil Option has no effect.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	allowAbsent, failFast, packed bool
	factory                       []dynamicinformer.Option
}

func newOptions(opts []Option) (o options) {
	o.packed, _ = strconv.ParseBool(os.Getenv("GVRKIT_PACKED_CACHES"))
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// WithAllowAbsent makes the cache treat a kind that is not served as an empty one: reads find no objects, and its informer counts as synced.
// When the kind is served, reads wait for its first list, and handlers get its objects. So a controller can start before its
// CustomResourceDefinition exists. Without the option, the first use of a kind that is not served is an error for which meta.IsNoMatchError
// is true, as in controller-runtime; a kind that is deleted later is empty in both cases. In a cache with namespaces, the cache assumes that
// an absent kind is namespaced: if the kind is installed as a cluster-scoped one, a handler that was added before gets each event once for
// each namespace.
func WithAllowAbsent() Option { return optionFunc(func(o *options) { o.allowAbsent = true }) }

// WithFailFast makes Get, List and GetInformer return if the informer is not synced for a reason that lasts until a person removes the cause,
// such as a missing permission. errors.As finds a [*status.NotSyncedError] in the error. Without the option, they wait until ctx ends, as in
// controller-runtime.
func WithFailFast() Option { return optionFunc(func(o *options) { o.failFast = true }) }

// WithPackedCaches makes one packed cache of each kind, with one watch, serve structured, unstructured and metadata objects. It takes a
// fraction of the memory, and more CPU time: Get and List decode each object that they return, and each handler of structured objects or
// metadata decodes its events. Transforms get unstructured objects. A read with UnsafeDisableDeepCopy of structured objects or metadata still
// returns copies. If a version of an object does not fit its Go type, Get and List return an error, and handlers get no event of that version.
// They later get an update from the last version that fits to the next one, or a deletion. If a transform has set a value that JSON does not
// have, such as an int, Get and List also return an error, and handlers get no event; handlers that have got an earlier version get OnDelete.
// In a cache with namespaces, each form has its own watches. For tests, GVRKIT_PACKED_CACHES=true in the environment has the same effect.
func WithPackedCaches() Option { return optionFunc(func(o *options) { o.packed = true }) }

// WithFactoryOptions configures the cache's factory, for example with [dynamicinformer.WithDiscovery] or
// [dynamicinformer.WithListConcurrency]. They take precedence over cache.Options. WithFactoryOptions may
// be given more than once.
func WithFactoryOptions(opts ...dynamicinformer.Option) Option {
	opts = slices.Clone(opts)
	return optionFunc(func(o *options) { o.factory = append(o.factory, opts...) })
}

// ofFactory returns the options of the factory: those of kinds without settings of their own are its defaults, so that other leases on its
// informers can share them.
func (o *options) ofFactory(opts *cache.Options) []dynamicinformer.Option {
	usual := cache.Config{
		LabelSelector: opts.DefaultLabelSelector, FieldSelector: opts.DefaultFieldSelector, Transform: opts.DefaultTransform,
		EnableWatchBookmarks: opts.DefaultEnableWatchBookmarks, SyncPeriod: opts.SyncPeriod,
	}
	all := []dynamicinformer.Option{dynamicinformer.WithWatchErrorHandler(opts.DefaultWatchErrorHandler)}
	for _, opt := range ofWatch(cache.AllNamespaces, &usual) {
		all = append(all, opt)
	}
	if o.packed {
		all = append(all, dynamicinformer.WithPackedCache())
	}
	return append(all, o.factory...)
}

// selected is what the requests of a watch select.
type selected struct {
	namespace, labels, fields string
	bookmarks                 bool
}

// selectedBy returns the selection of a watch on namespace with config.
func selectedBy(namespace string, config *cache.Config) selected {
	of := selected{namespace: namespace, bookmarks: config.EnableWatchBookmarks == nil || *config.EnableWatchBookmarks}
	if config.LabelSelector != nil {
		of.labels = config.LabelSelector.String()
	}
	if config.FieldSelector != nil {
		of.fields = config.FieldSelector.String()
		if only, is := config.FieldSelector.RequiresExactMatch("metadata.namespace"); is && namespace == cache.AllNamespaces {
			of.namespace = only // a request for all namespaces may be forbidden
		}
	}
	return of
}

// periodOf returns the period of resyncs.
func periodOf(config *cache.Config) time.Duration {
	if config.SyncPeriod != nil {
		return *config.SyncPeriod
	}
	return defaultSyncPeriod
}

// ofWatch returns the options of an informer on namespace with config.
func ofWatch(namespace string, config *cache.Config) []dynamicinformer.InformerOption {
	of := selectedBy(namespace, config)
	opts := []dynamicinformer.InformerOption{
		dynamicinformer.WithNamespace(of.namespace), dynamicinformer.WithLabelSelector(of.labels), dynamicinformer.WithFieldSelector(of.fields),
		dynamicinformer.WithResync(periodOf(config)), dynamicinformer.WithTransform(config.Transform),
	}
	if of.bookmarks {
		return append(opts, dynamicinformer.WithTweakListOptions(nil), dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListAuto))
	}
	return append(opts, dynamicinformer.WithTweakListOptions(withoutBookmarks),
		dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever)) // a watch-list ends with a bookmark
}

// withoutBookmarks is one function: informers that share a cache must have the same.
func withoutBookmarks(o *metav1.ListOptions) { o.AllowWatchBookmarks = false }
