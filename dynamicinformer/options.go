package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/form"
	"github.com/gvrkit/gvrkit/internal/informer"
	"github.com/gvrkit/gvrkit/internal/informermetrics"
	"github.com/gvrkit/gvrkit/internal/namespaces"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// Option configures a Factory and, through it, all its informers. Every combination of options is valid. If an option is given twice, the last
// one counts. A nil Option has no effect. If no server accepts the value of an option, the function that takes the option returns an [*OptionError].
type Option interface{ apply(*options) }

// LeaseOption configures one lease and its informer. It replaces the same option of the factory. Every combination is valid. If an option
// is given twice, the last one counts. A nil LeaseOption has no effect.
type LeaseOption interface{ applyToLease(*leaseOptions) }

// InformerOption is an option of a factory and of single leases. The factory's option applies to all informers whose leases do not have the
// option.
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
	form       form.Form
	metadata   metadata.Interface
	resolver   *discovery.Resolver
	client     []dynamicclient.Option
	identities *informermetrics.Identities // nil: no metrics
	lists      int                         // the maximum number of first lists at a time; 0: no limit
	listBytes  int64                       // their maximum estimated size; 0: no limit
	memory     int64                       // the maximum memory of all caches; 0: no limit
	overBudget BudgetPolicy
}

func newOptions(opts ...Option) options {
	o := options{form: form.Unstructured{}}
	o.packed, _ = strconv.ParseBool(os.Getenv("GVRKIT_PACKED_CACHES"))
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// WithDiscovery makes the factory ask resolver about each resource before the first request for it: whether it is served, supports list and
// watch, and is namespaced. The factory runs the resolver from Start on, or while an informer runs, unless the program runs it. Informers follow the
// changes of their types: see [Factory]. A nil resolver, the default of [New], turns discovery off: then the factory sends
// requests without a check, and no type is ever gone.
func WithDiscovery(resolver *discovery.Resolver) Option {
	return optionFunc(func(o *options) { o.resolver = resolver })
}

// WithClientOptions configures the client that NewForConfig creates. It has no effect on New, whose caller creates the client. It may be
// given more than once. Fields that an option leaves out, such as managedFields, are missing in all cached objects, also those of
// [AcquireTyped] and [WithMetadataOnly]. [dynamicclient.WithoutSharing] also concerns all of these. The other options concern unstructured objects.
func WithClientOptions(opts ...dynamicclient.Option) Option {
	opts = slices.Clone(opts)
	return optionFunc(func(o *options) { o.client = append(o.client, opts...) })
}

// WithMetadataClient sets the client of informers with metadata only, see [WithMetadataOnly]. New has no such client by default;
// NewForConfig creates one.
func WithMetadataClient(client metadata.Interface) Option {
	return optionFunc(func(o *options) { o.metadata = client })
}

// WithListConcurrency limits the number of first lists in progress of all informers of the factory. Further lists wait in the order in which their
// informers began, with [status.ReasonQueued]. A watch-list counts until its initial events are complete. A list that has failed waits
// again, behind the others. A list without progress for a minute no longer counts. The list of a type that was created again is a first
// list; a list after a gap is not, and never waits. If lists is zero or less, the default, there is no limit.
func WithListConcurrency(lists int) Option {
	return optionFunc(func(o *options) { o.lists = lists })
}

// WithListBudget limits the estimated size of all first lists in progress, in bytes of JSON. A list waits as with [WithListConcurrency], and again
// after its first page, which shows its size. A list that is larger than the budget is the only one in progress. Informers use first lists in pages
// instead of watch-lists. The size of a list with a selector, or of a set of namespaces, is not known in advance: only its pages that have arrived
// count. If bytes is zero or less, the default, there is no limit.
func WithListBudget(bytes int64) Option {
	return optionFunc(func(o *options) { o.listBytes = bytes })
}

// WithMemoryBudget limits the memory of all caches of the factory: the sum of CacheBytes of [status.Informer]. The first page of a first list shows
// how much memory the cache will take, if the remaining objects are like those of the page. If that does not fit, no other page is requested, and the
// informer waits with [status.ReasonOverBudget] until other caches have released enough memory, or for [Lease.Retry]. Other informers that fit are
// not affected. The server does not report the number of remaining objects of a list with a selector: such a list is refused at the page that does
// not fit. A cache that grows later is kept and counts: see [Factory.MemoryBudget]. Informers use first lists in pages instead of watch-lists. If
// bytes is zero or less, the default, there is no limit.
func WithMemoryBudget(bytes int64) Option {
	return optionFunc(func(o *options) { o.memory = bytes })
}

// BudgetPolicy defines what happens to a type whose cache does not fit into the budget of [WithMemoryBudget].
type BudgetPolicy int

// The budget policies.
const (
	// RefuseOverBudget lets the informer wait.
	RefuseOverBudget BudgetPolicy = iota
	// PackOverBudget packs the cache, as [WithPackedCache] does, before its first object is stored, and lets the informer wait only if it does not fit in
	// packed form either. A packed cache stays packed, and Packed of [status.Informer] is true. A cache is not packed later, neither for a namespace that is
	// added to a set nor because it has grown. Informers on metadata or Go types wait.
	PackOverBudget
)

// WithBudgetPolicy sets the budget policy of the factory. The default is RefuseOverBudget.
func WithBudgetPolicy(policy BudgetPolicy) Option {
	return optionFunc(func(o *options) { o.overBudget = policy })
}

// packing returns when the cache of an informer is packed that has WithPackedCache, or not.
func (o *options) packing(packed bool) form.Packing {
	switch {
	case packed:
		return form.Always
	case o.memory > 0 && o.overBudget == PackOverBudget:
		return form.OnDemand
	}
	return form.Never
}

// WithNamespace limits informers to namespace. The default is all namespaces. A namespace that is not a valid name is an [*OptionError].
// With discovery, informers on cluster-scoped resources ignore the namespace; without discovery, requests for such a resource fail. It
// replaces an earlier [WithNamespaces].
func WithNamespace(namespace string) InformerOption {
	return informerOptionFunc(func(s *settings) { s.namespace, s.namespaces = namespace, nil })
}

// WithNamespaces limits informers to a set of namespaces, which [Lease.SetNamespaces] changes. There is one informer with one cache. Each namespace has its own
// lists, watches and pauses. A namespace in which requests fail does not affect the others, delays the first sync for at most a minute, and is in Namespaces of
// [status.Informer]. The informer itself fails only if all namespaces fail. Until a namespace has been listed, listers return a [*status.IncompleteError] with
// the objects of the others. The set uses lists instead of watch-lists, and its goroutines call a watch error handler concurrently. Without names, the set is
// empty, and synced. A name that is not valid is an [*OptionError]. It replaces an earlier [WithNamespace].
func WithNamespaces(names ...string) InformerOption {
	chosen := namespaces.Named(names...)
	return informerOptionFunc(func(s *settings) { s.namespace, s.namespaces = "", chosen.After(s.namespaces) })
}

// WithNamespaceSelector limits informers to the namespaces whose labels match selector, as [WithNamespaces] does. The set changes with the Namespace
// objects and their labels. The informer lists and watches Namespace objects, which the user must be allowed to do. Until they have been listed, the
// informer is not synced, and its status has the reason. A selector that can't be parsed is an [*OptionError]. It replaces an earlier
// [WithNamespace] or [WithNamespaces].
func WithNamespaceSelector(selector string) InformerOption {
	chosen := namespaces.Labeled(selector)
	return informerOptionFunc(func(s *settings) { s.namespace, s.namespaces = "", chosen.After(s.namespaces) })
}

// WithAllowedNamespaces limits informers to namespaces that the user may list. If a list of all namespaces is forbidden, the informer follows
// Namespace objects, as [WithNamespaceSelector] does, and leaves out those whose lists are forbidden. Its status does not have them, and it tries them again
// after five minutes, or on [Lease.Retry]. A list of all namespaces from the cache also returns a [*status.IncompleteError], which names them. A namespace
// that is forbidden later keeps its objects, and its status has the reason. It is tried more often at first, and so are all namespaces if all are forbidden.
// The informer does not list all namespaces again. [WithNamespaces] or [WithNamespaceSelector], in any order, limit the namespaces.
func WithAllowedNamespaces() InformerOption {
	return informerOptionFunc(func(s *settings) { s.namespace, s.namespaces = "", s.namespaces.Allowed() })
}

// WithTweakListOptions calls tweak with the options of every list and watch request before it is sent, so that tweak can set selectors, for
// example. Tweak is called concurrently. A nil tweak has no effect.
func WithTweakListOptions(tweak TweakListOptionsFunc) InformerOption {
	return informerOptionFunc(func(s *settings) { s.tweak = tweak })
}

// WithLabelSelector limits informers to objects whose labels match selector. A selector that can't be parsed is an [*OptionError].
// [WithTweakListOptions] is applied after it.
func WithLabelSelector(selector string) InformerOption {
	return informerOptionFunc(func(s *settings) { s.labels = selector })
}

// WithFieldSelector limits informers to objects whose fields match selector. Custom resources can be selected by metadata.name,
// metadata.namespace and the selectable fields of the CRD. Another field leads to [status.ReasonBadRequest]. A selector that can't be
// parsed is an [*OptionError]. [WithTweakListOptions] is applied after it.
func WithFieldSelector(selector string) InformerOption {
	return informerOptionFunc(func(s *settings) { s.fields = selector })
}

// WithTransform sets the informers' cache.TransformFunc, which may change each object before it is stored. It gets the objects
// of lists and events, also of deletions, as the server sends them: never its own output, nor a cache.DeletedFinalStateUnknown.
func WithTransform(transform cache.TransformFunc) InformerOption {
	return informerOptionFunc(func(s *settings) { s.transform = transform })
}

// WithIndexers adds indexers to each informer's cache, besides the index by namespace, which every informer has under the name cache.NamespaceIndex.
// Indexers may replace that index, as in client-go, but listers of one namespace read it. A lease adds the indexers to its shared informer.
func WithIndexers(indexers cache.Indexers) InformerOption {
	indexers = maps.Clone(indexers)
	return informerOptionFunc(func(s *settings) { s.indexers = indexers })
}

// WithWatchErrorHandler passes the errors of lists and watches that will be retried to handler instead of the log. A goroutine of the
// informer calls handler, and continues after it has returned.
func WithWatchErrorHandler(handler cache.WatchErrorHandlerWithContext) InformerOption {
	return informerOptionFunc(func(s *settings) { s.onError = handler })
}

// WithResync sets the period after which handlers get an update for every cached object. The period of each informer differs by up to 10 %,
// so that not all informers resync at the same time. A resync sends no request. If period is zero or less, the default, there is no resync.
func WithResync(period time.Duration) InformerOption {
	return informerOptionFunc(func(s *settings) { s.resync, s.jitter = max(0, period), true })
}

// asClientGo sets the same resync period for all informers, and makes them cache objects without a name, as client-go does.
func asClientGo(resync time.Duration) Option {
	return optionFunc(func(o *options) { o.resync, o.jitter, o.strict = resync, false, true })
}

// RemovalPolicy defines what happens to an informer's cache if there is evidence that its type is gone.
type RemovalPolicy int

// The removal policies.
const (
	// EmitDeletes empties the cache: handlers get the deletion of each object, with its last state.
	EmitDeletes RemovalPolicy = iota
	// KeepCache keeps the cache; the status has the time since when the cache is stale. When the type is served again, handlers get the
	// differences. If it is another type with the same name, handlers first get the deletion of all objects.
	KeepCache
)

func (p RemovalPolicy) String() string {
	if p == KeepCache {
		return "KeepCache"
	}
	return "EmitDeletes"
}

// WithRemovalPolicy sets the removal policy of the informer. The default is EmitDeletes.
func WithRemovalPolicy(policy RemovalPolicy) InformerOption {
	return informerOptionFunc(func(s *settings) { s.removal = policy })
}

// WatchListPolicy defines whether informers use watch-lists (KEP-3157): a watch that sends the initial list as events, instead of a list
// followed by a watch.
type WatchListPolicy int

// The watch-list policies.
const (
	// WatchListAuto uses watch-lists as client-go does, except for types that an aggregated API server serves, if discovery knows that, and
	// for types whose watch-list has stalled within the last hour.
	WatchListAuto WatchListPolicy = iota
	// WatchListNever uses no watch-lists.
	WatchListNever
	// WatchListAnywhere is WatchListAuto, but also for types that an aggregated API server serves.
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

// WithWatchListPolicy sets when informers use watch-lists. The default is WatchListAuto. After a failed watch-list, the informer always
// uses a list.
func WithWatchListPolicy(policy WatchListPolicy) InformerOption {
	return informerOptionFunc(func(s *settings) { s.watchList = policy })
}

// WithPageSize sets the maximum number of objects in a page of a list. If objects is zero or less, the default, it is client-go's default
// of 500. Watch-lists have no pages.
func WithPageSize(objects int64) InformerOption {
	return informerOptionFunc(func(s *settings) { s.pageSize = max(0, objects) })
}

// WithStrictDecoding makes one object that can't be decoded fail its whole list, or end its watch, as in client-go. By default, the object
// is left out until a version of it can be decoded, all others are served, and the status names it, with [status.ReasonDecodeFailed]. A
// factory of New leaves out only objects without a name: its client decodes responses. Responses in CBOR are always decoded as in client-go.
func WithStrictDecoding() InformerOption {
	return informerOptionFunc(func(s *settings) { s.strict = true })
}

// WithPackedCache makes the informer cache objects in packed form (package packed), in about a tenth of client-go's memory. Readers, index
// functions, transforms and handlers get ordinary unstructured objects. Unpacking an object takes 20 to 50 µs; after a garbage collection, it is
// unpacked again, unless the program has kept it. Handlers of [Lease.AddPackedHandler], selectors and queries unpack nothing. An
// object to which a transform has given another type, or values that no decoder returns, is cached as it is. A lease without the option can
// share an informer with a packed cache. A lease with the option can't share an informer without one: that is a [*ConflictError]. Informers on
// metadata or Go types ignore the option. For tests, GVRKIT_PACKED_CACHES=true in the environment sets it for all informers.
func WithPackedCache() InformerOption {
	return informerOptionFunc(func(s *settings) { s.packed = true })
}

// WithPolling makes informers list a type that can't be watched, and list it again after each period, which is at least 1 s, with 10 % jitter. Handlers get the
// differences: of several changes of an object between two lists, only the last one. Objects without a resourceVersion are compared by their content. Types
// that can be watched are watched. Without the option, or if period is zero or less, the informer waits with [status.ReasonVerbNotSupported].
func WithPolling(period time.Duration) InformerOption {
	if period > 0 {
		period = max(period, time.Second)
	}
	return informerOptionFunc(func(s *settings) { s.polling = max(0, period) })
}

// WithShard limits informers to the objects of shard, of all namespaces or of those that other options choose. Lists and watches request only
// them; a server without the feature ShardedListAndWatch sends all, and the others are left out. When the shard changes, gained objects are
// listed and added, beside the open watch; lost ones leave the cache, and handlers get OnMoved if they are a [MovedHandler], and no deletion.
// A handler is called only for objects that shard owns at that time: other events wait until shard owns the object again, or has lost it. Shard lets a slot
// go only after the calls in progress for its objects. A program that acts later than its handlers, such as one with a queue, calls shard.Owns first.
// The first list waits for the first slots, for up to 20 s; slots that are gained later do not wait for a budget. Objects without a UID are in one slot, but
// handlers are called for them also if shard does not own that slot, and shard does not wait for these calls. A nil shard has no effect.
func WithShard(shard sharding.Shard) InformerOption {
	if shard != nil && !reflect.ValueOf(shard).Comparable() {
		shard = &struct{ sharding.Shard }{shard} // leases compare shards
	}
	return informerOptionFunc(func(s *settings) { s.shard = shard })
}

// WithAllowAbsent makes [Factory.Acquire] succeed for a type that is not served, or if discovery is inconclusive: the informer waits for the type.
func WithAllowAbsent() LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.absent = true })
}

// WithMetadataOnly makes the informer request and cache only the metadata of objects. Objects are *metav1.PartialObjectMetadata, also in
// transforms, index functions and handlers; package metadatalister reads them. They are shared and read-only. As with client-go, their
// apiVersion and kind are empty or those of PartialObjectMetadata, never those of the type. An informer with metadata and one with whole
// objects are separate: each has its own watch. A factory of New needs [WithMetadataClient]; without it, Acquire returns an [*OptionError].
// It replaces an earlier [WithGoType].
func WithMetadataOnly() LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.form = form.Metadata{} })
}

// WithSeparateInformer gives the lease its own informer, with its own cache and watch. Without it, leases share an informer and must have
// the same options of informers. Only indexers may differ: those of all leases are added.
func WithSeparateInformer() LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.separate = true })
}

// WithLinger keeps the informer for d after the release of its last lease, so that the next lease can share it. If leases have different
// lingers, the longest counts. The default is zero; a negative d is zero too.
func WithLinger(d time.Duration) LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.linger = d })
}

// WithLeaseName sets the name of the lease's owner, for [Factory.Status] and [Factory.Explain]. Several leases may have the same name. The
// default is no name.
func WithLeaseName(name string) LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.name = name })
}

// WithCoalescing merges the events that a handler of the lease has not got yet: at most one event of each object waits, with its latest
// state. An addition and an update become an addition. Two updates become one update from the first old object to the last new one. An update and a
// deletion become a deletion. An addition and a deletion become no event. A deletion and the addition of a new object stay two events. Without the
// option, as in client-go, all events wait, and use memory without limit. HasSynced of the registration is true when each object of the
// initial list has been delivered or merged.
//
// Limit is the maximum number of objects that wait for a handler and are not in the cache: old objects of updates, and deleted objects. Zero or less
// is the number of cached objects. Beyond limit, no event is left out and nothing waits for the handler, but these objects have only apiVersion,
// kind and metadata, without managedFields, and OnDelete gets a [cache.DeletedFinalStateUnknown] with the object. It also limits the objects of a
// handler that wait until the shard of [WithShard] owns them.
func WithCoalescing(limit int) LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.handlers.Coalescing, o.handlers.States = true, limit })
}

// WithHandlerRecovery recovers the panics of the lease's handlers: the handler gets its next event. The status names the handler and the
// object, with [status.ReasonHandlerPanicked], and the log has the stack. Without the option, as in client-go, a panic ends the process.
func WithHandlerRecovery() LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.handlers.Recovery = true })
}

// WithVersionPolicy sets the version in which the resource is listed and watched. Leases with different policies do not share an informer.
//
// The default is [discovery.Exact]: if only other versions are served, the informer waits for its version and keeps its cache, since the objects
// still exist. With another policy, the informer changes to the version that the policy selects at that time. Handlers then get an update for
// each object, and no deletions or additions. Without discovery, every policy is Exact. [discovery.EveryVersion] is an [*OptionError].
func WithVersionPolicy(policy discovery.VersionPolicy) LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.versions = policy })
}

// ErrInvalidOption is matched by every [*OptionError].
var ErrInvalidOption = errors.New("invalid option")

// OptionError reports that an option has a value that no server accepts. It unwraps to the cause.
type OptionError struct {
	// Option is the name of the option, and Value its value; empty if it has none.
	Option, Value string
	Err           error
}

func (e *OptionError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %v", e.Option, e.Err)
	}
	return fmt.Sprintf("%s(%q): %v", e.Option, errtext.Cut(e.Value), e.Err)
}

// Is reports whether target is ErrInvalidOption.
func (e *OptionError) Is(target error) bool { return target == ErrInvalidOption }

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// optionError returns err as an [*OptionError] if the form of objects can't be had.
func optionError(err error) error {
	if e, is := errors.AsType[*form.Error](err); is {
		return &OptionError{Option: e.Option, Err: e.Err}
	}
	return err
}

// check returns an [*OptionError] if an option has a value that no server accepts. It can't check the effect of a tweak.
func (s *settings) check() error {
	if s.namespace != metav1.NamespaceAll {
		if wrong := validation.IsDNS1123Label(s.namespace); wrong != nil {
			return &OptionError{Option: "WithNamespace", Value: s.namespace, Err: errors.New(wrong[0])}
		}
	}
	if name, err := s.namespaces.Check(); err != nil {
		return &OptionError{Option: s.namespaces.Option(), Value: name, Err: err}
	}
	if _, err := labels.Parse(s.labels); err != nil {
		return &OptionError{Option: "WithLabelSelector", Value: s.labels, Err: err}
	}
	if _, err := fields.ParseSelector(s.fields); err != nil {
		return &OptionError{Option: "WithFieldSelector", Value: s.fields, Err: err}
	}
	if err := s.checkShard(); err != nil {
		return err
	}
	if err := informer.CheckIndexers(s.indexers); err != nil {
		return &OptionError{Option: "WithIndexers", Err: err}
	}
	return nil
}

// checkShard returns an error if the shard is a nil pointer.
func (s *settings) checkShard() error {
	if v := reflect.ValueOf(s.shard); v.Kind() == reflect.Pointer && v.IsNil() {
		return &OptionError{Option: "WithShard", Err: fmt.Errorf("%w: the shard is a nil %T", source.ErrInvalid, s.shard)}
	}
	return nil
}

// InformerMetricsForgetter is a cache.InformerMetricsProvider with a call for the end of informers.
type InformerMetricsForgetter interface {
	cache.InformerMetricsProvider
	// ForgetInformer is called when no informer with the identity id runs any more. The package does not use its metrics after that. A
	// later informer with id requests new metrics.
	ForgetInformer(id cache.InformerNameAndResource)
}

// WithInformerMetrics makes provider publish client-go's own metrics of each informer, under name and the GVR: the number of queued events,
// their latency, and the resourceVersion of the store. If provider is nil, it is the provider of cache.SetInformerMetricsProvider. If name
// is nil, the default, there are no metrics.
//
// client-go accepts a name only once for each GVR. So the factory uses one identity for all informers on a GVR. Two of them run at the same time
// if an earlier one has not ended yet, if they have different version policies, or with [WithSeparateInformer]. Then only the metrics of the informer
// that began first are published. When it has ended, those of the next one are published, with its last gauge values; its earlier latencies are not
// observed again. The package calls provider when an informer begins to run, which is when its type is served. When the last informer on a GVR has
// ended, it calls ForgetInformer if provider is an [InformerMetricsForgetter]; otherwise it sets the gauges to zero. This is complete when Shutdown
// returns nil. If provider is nil, client-go calls its process-wide provider when an informer is created. All informers on a GVR then
// publish at the same time, so that a gauge has the last value of any of them, and no metrics are forgotten before name is released.
//
// Factories can share a name only if they have the same Option value. The owner of name releases it after Shutdown. An informer that a user
// runs without the factory has metrics only if the factory is also started, and until it ends.
func WithInformerMetrics(name *cache.InformerName, provider cache.InformerMetricsProvider) Option {
	identities := informermetrics.New(name, provider)
	return optionFunc(func(o *options) { o.identities = identities })
}
