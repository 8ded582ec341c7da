package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/informermetrics"
	"github.com/gvrkit/gvrkit/internal/source"
)

// Option configures a Factory and, through it, all its informers. Every
// combination of options is valid; of the same option given twice the last one
// counts; a nil Option has no effect. A value that no server accepts is an
// [*OptionError] of the function that the option is given to.
type Option interface{ apply(*options) }

// ResourceOption configures the informer of one lease. Options that are valid for a
// factory, too, take the place of the factory's. Every combination is valid; of the same
// option given twice the last one counts; a nil ResourceOption has no effect.
type ResourceOption interface{ applyToResource(*resourceOptions) }

// InformerOption is an option of a factory and of single leases: the factory's are for
// all informers that have none of their own.
type InformerOption interface {
	Option
	ResourceOption
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type resourceOptionFunc func(*resourceOptions)

func (f resourceOptionFunc) applyToResource(o *resourceOptions) { f(o) }

type informerOptionFunc func(*settings)

func (f informerOptionFunc) apply(o *options)                   { f(&o.settings) }
func (f informerOptionFunc) applyToResource(o *resourceOptions) { f(&o.settings) }

type options struct {
	settings
	customResync map[schema.GroupVersionResource]time.Duration
	resolver     *discovery.Resolver
	client       []dynamicclient.Option
	identities   *informermetrics.Identities // nil: no metrics
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

// WithDefaultResync sets the period in which handlers get every cached object
// once more as an update. It causes no requests. Zero or less, the default, means
// never.
func WithDefaultResync(period time.Duration) Option {
	return optionFunc(func(o *options) { o.resync = period })
}

// WithCustomResync sets the resync period of single resources, in place of the
// default one. Zero or less means never.
func WithCustomResync(periods map[schema.GroupVersionResource]time.Duration) Option {
	periods = maps.Clone(periods)
	return optionFunc(func(o *options) { o.customResync = periods })
}

// WithDiscovery makes the factory ask resolver about each resource before the
// first request for it leaves: whether it is served, supports list and watch, and
// has namespaces. While an informer of the factory's is started, the factory runs the
// resolver, unless somebody else does, and follows what becomes of each type: see
// [Factory] for what that means. Nil, the default of [New], turns that off: what can't
// be listed is then found out by listing, and no type is ever taken to be gone.
func WithDiscovery(resolver *discovery.Resolver) Option {
	return optionFunc(func(o *options) { o.resolver = resolver })
}

// WithClientOptions says how the client that NewForConfig makes decodes. It has no
// effect on New, which is given a client. May be given more than once.
func WithClientOptions(opts ...dynamicclient.Option) Option {
	opts = slices.Clone(opts)
	return optionFunc(func(o *options) { o.client = append(o.client, opts...) })
}

// settingsOf returns those of gvr's informer, if no lease has others.
func (o *options) settingsOf(gvr schema.GroupVersionResource) settings {
	s := o.settings
	if period, ok := o.customResync[gvr]; ok {
		s.resync = period
	}
	return s
}

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

// resourceOptions are what a lease is asked for with.
type resourceOptions struct {
	settings
	versions discovery.VersionPolicy
	absent   bool
	separate bool
	linger   time.Duration
	name     string
}

func (f *Factory) resourceOptions(gvr schema.GroupVersionResource, opts []ResourceOption) resourceOptions {
	o := resourceOptions{settings: f.options.settingsOf(gvr)}
	for _, opt := range opts {
		if opt != nil {
			opt.applyToResource(&o)
		}
	}
	return o
}

// check returns an [*OptionError] if an option has a value that has no meaning.
func (o *resourceOptions) check() error {
	if o.versions == discovery.EveryVersion() {
		return &OptionError{Option: "WithVersionPolicy", Value: o.versions.String(), Err: errors.New("a lease is on one version")}
	}
	return o.settings.check()
}

// AllowAbsent makes [Factory.Acquire] arm the informer of a type that is not served, or
// of which that can't be told: it begins when the type is there.
func AllowAbsent() ResourceOption {
	return resourceOptionFunc(func(o *resourceOptions) { o.absent = true })
}

// WithSeparateInformer gives the lease an informer of its own, with a cache and a watch,
// instead of a share in one whose options would have to be the same.
func WithSeparateInformer() ResourceOption {
	return resourceOptionFunc(func(o *resourceOptions) { o.separate = true })
}

// WithLinger keeps the informer for d after its last lease has been released, for one
// who comes soon after. Of several leases' lingers the longest counts. The default is
// zero, and so is what is less.
func WithLinger(d time.Duration) ResourceOption {
	return resourceOptionFunc(func(o *resourceOptions) { o.linger = d })
}

// WithLeaseName says whose the lease is, for [Factory.Status] and [Factory.Explain] to tell.
// Several leases may have one name; the default is none.
func WithLeaseName(name string) ResourceOption {
	return resourceOptionFunc(func(o *resourceOptions) { o.name = name })
}

// WithResync sets the period in which handlers get every cached object once more as an
// update, give or take a tenth, so that informers do not all do so at the same time. It
// causes no requests. Zero or less means never.
func WithResync(period time.Duration) ResourceOption {
	return resourceOptionFunc(func(o *resourceOptions) {
		o.resync, o.jitter = max(0, period), true
	})
}

// WithVersionPolicy says in which version the resource is listed and watched. Leases with
// different policies do not share an informer.
//
// The default is [discovery.Exact]: while that version is not served, though others are, the
// informer waits for it and keeps its cache, since the objects are still there. Under another
// policy the informer goes over to the version that the policy chooses at the time: the same objects
// under the same keys, each an update, and none is deleted or added. Without discovery every policy
// is Exact. [discovery.EveryVersion] is an [*OptionError].
func WithVersionPolicy(policy discovery.VersionPolicy) ResourceOption {
	return resourceOptionFunc(func(o *resourceOptions) { o.versions = policy })
}

// resyncPeriod returns the period for one informer.
func (s *settings) resyncPeriod() time.Duration {
	if !s.jitter || s.resync <= 0 {
		return s.resync
	}
	return wait.Jitter(s.resync-s.resync/10, 0.2)
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

// check returns an [*OptionError] if an option has a value that no server accepts. What a
// tweak does is not known here.
func (s *settings) check() error {
	if s.namespace != metav1.NamespaceAll {
		if wrong := validation.IsDNS1123Label(s.namespace); wrong != nil {
			return &OptionError{Option: "WithNamespace", Value: s.namespace, Err: errors.New(wrong[0])}
		}
	}
	if _, err := labels.Parse(s.labels); err != nil {
		return &OptionError{Option: "WithLabelSelector", Value: s.labels, Err: err}
	}
	if _, err := fields.ParseSelector(s.fields); err != nil {
		return &OptionError{Option: "WithFieldSelector", Value: s.fields, Err: err}
	}
	return nil
}

// invalid returns why no request can be made with s, or nil. It is for factories of client-go's
// form, whose constructors return no error: they refuse only what client-go's client refuses,
// since fakes accept more than servers do.
func (s *settings) invalid() error {
	if s.namespace == metav1.NamespaceAll {
		return nil
	}
	if wrong := content.IsPathSegmentName(s.namespace); wrong != nil {
		return fmt.Errorf("%w: %w", source.ErrInvalid,
			&OptionError{Option: "WithNamespace", Value: s.namespace, Err: errors.New(strings.Join(wrong, ", "))})
	}
	return nil
}
