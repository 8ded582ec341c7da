package dynamicinformer

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/source"
)

// settings are how one informer is set up.
type settings struct {
	namespace string
	tweak     TweakListOptionsFunc
	labels    string
	fields    string
	transform cache.TransformFunc
	indexers  cache.Indexers
	resync    time.Duration
	jitter    bool // of resync
	removal   RemovalPolicy
	watchList WatchListPolicy
	pageSize  int64
	onError   cache.WatchErrorHandlerWithContext
}

// WithNamespace limits informers to namespace. The default is all namespaces. What is no
// name of a namespace is an [*OptionError].
// With discovery, informers on cluster-scoped resources ignore it; without, such
// a resource is asked for in a place where no server has it.
func WithNamespace(namespace string) InformerOption {
	return informerOptionFunc(func(s *settings) { s.namespace = namespace })
}

// WithTweakListOptions lets tweak change the options of every list and watch
// request before it leaves, to set selectors for example. It is called in several
// goroutines at a time. Nil changes nothing.
func WithTweakListOptions(tweak TweakListOptionsFunc) InformerOption {
	return informerOptionFunc(func(s *settings) { s.tweak = tweak })
}

// WithLabelSelector limits informers to objects whose labels match selector. What is no
// selector is an [*OptionError]. A tweak comes after it.
func WithLabelSelector(selector string) InformerOption {
	return informerOptionFunc(func(s *settings) { s.labels = selector })
}

// WithFieldSelector limits informers to objects whose fields match selector. Of custom
// resources, servers know metadata.name and metadata.namespace, and the selectable fields
// of the CRD: another field is [status.ReasonBadRequest]. What is no selector is an [*OptionError].
// A tweak comes after it.
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
// adds them to the informer that it shares; other names are none of its business.
func WithIndexers(indexers cache.Indexers) InformerOption {
	indexers = maps.Clone(indexers)
	return informerOptionFunc(func(s *settings) { s.indexers = indexers })
}

// WithWatchErrorHandler makes handler get the errors after which a list or watch is tried
// again, in place of the log. It is called in a goroutine of the informer's, which goes
// on when it returns.
func WithWatchErrorHandler(handler cache.WatchErrorHandlerWithContext) InformerOption {
	return informerOptionFunc(func(s *settings) { s.onError = handler })
}

// RemovalPolicy says what becomes of the cache of a type that is gone for certain.
type RemovalPolicy int

// What can become of it.
const (
	// EmitDeletes empties it: handlers get the deletion of each object, with its last
	// state.
	EmitDeletes RemovalPolicy = iota
	// KeepCache keeps it, and the status says since when it is stale. When the type is
	// there again, it is compared with what there is then; if it is another type of the
	// same name, all objects are deleted first.
	KeepCache
)

func (p RemovalPolicy) String() string {
	if p == KeepCache {
		return "KeepCache"
	}
	return "EmitDeletes"
}

// WithRemovalPolicy says what becomes of the cache when the type is gone. The default is
// EmitDeletes.
func WithRemovalPolicy(policy RemovalPolicy) InformerOption {
	return informerOptionFunc(func(s *settings) { s.removal = policy })
}

// WatchListPolicy says whether informers begin with a watch that begins with the list
// (KEP-3157), instead of a list and a watch.
type WatchListPolicy int

// When they do.
const (
	// WatchListAuto: where client-go would, but for types that another server serves
	// behind the API server, as far as discovery tells, and for those where it has stalled
	// within the hour.
	WatchListAuto WatchListPolicy = iota
	// WatchListNever: they list and watch.
	WatchListNever
	// WatchListAnywhere: also for types that another server serves.
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

// allIndexers returns a fresh map: the informer keeps and extends it.
func (s *settings) allIndexers() cache.Indexers {
	all := cache.Indexers{}
	maps.Copy(all, s.indexers)
	all[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	return all
}

// config returns how the informer of gvr is fed.
func (s *settings) config(client dynamic.Interface, gvr schema.GroupVersionResource) source.Config {
	return source.Config{
		Client: orNil(client), Invalid: s.invalid(), GVR: gvr, Namespace: s.namespace, Tweak: s.tweakAll(), KeepCache: s.removal == KeepCache,
		NoWatchList: s.watchList == WatchListNever, WatchListAnywhere: s.watchList == WatchListAnywhere,
		PageSize: s.pageSize,
	}
}

// tweakAll returns what is done to the options of each request.
func (s *settings) tweakAll() TweakListOptionsFunc {
	if s.labels == "" && s.fields == "" {
		return s.tweak
	}
	labels, fields, tweak := s.labels, s.fields, s.tweak
	return func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = labels, fields
		if tweak != nil {
			tweak(o)
		}
	}
}
