// Package settings computes the settings of each watch of a cache from cache.Options, with the rules of controller-runtime:
//
//   - [Default] sets the defaults of options.
//   - [Settings] has the settings of all kinds, and [Kind] those of one kind.
//
// The package does not know informers.
package settings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/gvrkit/gvrkit/internal/redirect"
)

// Kind are the settings of the watches of one kind.
type Kind struct {
	// Namespaces has the settings of each namespace. [cache.AllNamespaces] stands for all others. If it is empty, the kind is watched
	// as a whole.
	Namespaces map[string]cache.Config
	// Whole are the settings of a kind that is watched as a whole: it has no Namespaces, or it is cluster-scoped.
	Whole cache.Config
}

// Settings are the settings of all kinds.
type Settings struct {
	kinds  map[schema.GroupVersionKind]Kind
	others Kind
}

// New returns the settings of opts, which [Default] has returned.
func New(opts *cache.Options) (*Settings, error) {
	s := &Settings{
		kinds:  make(map[schema.GroupVersionKind]Kind, len(opts.ByObject)),
		others: Kind{Namespaces: opts.DefaultNamespaces, Whole: ofAll(opts)},
	}
	for object, by := range opts.ByObject {
		gvk, err := apiutil.GVKForObject(object, opts.Scheme)
		if err != nil {
			return nil, fmt.Errorf("failed to get GVK for type %T: %w", object, err)
		}
		s.kinds[gvk] = Kind{Namespaces: by.Namespaces, Whole: ofKind(by)}
	}
	return s, nil
}

// Of returns the settings of gvk. Usual reports whether gvk has no settings of its own.
func (s *Settings) Of(gvk schema.GroupVersionKind) (_ Kind, usual bool) {
	if kind, own := s.kinds[gvk]; own {
		return kind, false
	}
	return s.others, true
}

// Default returns opts with all defaults, as cache.New computes them, and an HTTP client that follows no redirect to another host. Absent
// reports whether a kind may be absent: then a kind of ByObject that the mapper does not have is taken for a namespaced one.
func Default(cfg *rest.Config, opts cache.Options, absent bool) (cache.Options, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, rest.DefaultKubernetesUserAgent())
	var err error
	if opts.HTTPClient == nil {
		if opts.HTTPClient, err = rest.HTTPClientFor(cfg); err != nil {
			return cache.Options{}, fmt.Errorf("could not create HTTP client from config: %w", err)
		}
	}
	opts.HTTPClient = redirect.Refuse(opts.HTTPClient) // also for the mapper, and for informers of NewInformer
	if opts.Scheme == nil {
		opts.Scheme = scheme.Scheme
	}
	if opts.Mapper == nil {
		if opts.Mapper, err = apiutil.NewDynamicRESTMapper(cfg, opts.HTTPClient); err != nil {
			return cache.Options{}, fmt.Errorf("could not create RESTMapper from config: %w", err)
		}
	}
	opts.ByObject, opts.DefaultNamespaces = maps.Clone(opts.ByObject), maps.Clone(opts.DefaultNamespaces)
	for object, by := range opts.ByObject {
		namespaced, err := apiutil.IsObjectNamespaced(object, opts.Scheme, opts.Mapper)
		switch {
		case err != nil && absent && meta.IsNoMatchError(err):
			namespaced = true
		case err != nil:
			return opts, fmt.Errorf("failed to determine if %T is namespaced: %w", object, err)
		case !namespaced && by.Namespaces != nil:
			return opts, fmt.Errorf("type %T is not namespaced, but its ByObject.Namespaces setting is not nil", object)
		}
		opts.ByObject[object] = defaultKind(by, namespaced, &opts)
	}
	// The kinds come first: they need the namespaces without the defaults of all kinds.
	for namespace, config := range opts.DefaultNamespaces {
		opts.DefaultNamespaces[namespace] = others(namespace, Merge(config, ofAll(&opts)), opts.DefaultNamespaces)
	}
	return opts, nil
}

// defaultKind returns the settings of one kind with their defaults: those of its namespace come first, then its own, those of the
// same namespace for all kinds, and at last those of all kinds.
func defaultKind(by cache.ByObject, namespaced bool, opts *cache.Options) cache.ByObject {
	own := ofKind(by)
	if namespaced && by.Namespaces == nil {
		by.Namespaces = opts.DefaultNamespaces
	}
	by.Namespaces = maps.Clone(by.Namespaces)
	for namespace, config := range by.Namespaces {
		config = Merge(config, own)
		config = Merge(config, opts.DefaultNamespaces[namespace])
		config = Merge(config, ofAll(opts))
		by.Namespaces[namespace] = others(namespace, config, by.Namespaces)
	}
	if namespaced && len(by.Namespaces) > 0 {
		return by
	}
	own = Merge(own, ofAll(opts))
	by.Label, by.Field, by.Transform, by.SyncPeriod = own.LabelSelector, own.FieldSelector, own.Transform, own.SyncPeriod
	by.UnsafeDisableDeepCopy, by.EnableWatchBookmarks = own.UnsafeDisableDeepCopy, own.EnableWatchBookmarks
	return by
}

// others limits the config of [cache.AllNamespaces] to the namespaces that have none of their own in namespaces.
func others(namespace string, config cache.Config, namespaces map[string]cache.Config) cache.Config {
	if namespace != cache.AllNamespaces {
		return config
	}
	var selectors []fields.Selector
	for _, named := range slices.Sorted(maps.Keys(namespaces)) {
		if named != cache.AllNamespaces {
			selectors = append(selectors, fields.OneTermNotEqualSelector("metadata.namespace", named))
		}
	}
	if config.FieldSelector != nil {
		selectors = append(selectors, config.FieldSelector)
	}
	config.FieldSelector = fields.AndSelectors(selectors...)
	return config
}

// Merge returns config with the values of from where it has none.
func Merge(config, from cache.Config) cache.Config {
	if config.LabelSelector == nil {
		config.LabelSelector = from.LabelSelector
	}
	if config.FieldSelector == nil {
		config.FieldSelector = from.FieldSelector
	}
	if config.Transform == nil {
		config.Transform = from.Transform
	}
	config.UnsafeDisableDeepCopy = cmp.Or(config.UnsafeDisableDeepCopy, from.UnsafeDisableDeepCopy)
	config.EnableWatchBookmarks = cmp.Or(config.EnableWatchBookmarks, from.EnableWatchBookmarks)
	config.SyncPeriod = cmp.Or(config.SyncPeriod, from.SyncPeriod)
	return config
}

// ofAll returns the settings of all kinds.
func ofAll(opts *cache.Options) cache.Config {
	return cache.Config{
		LabelSelector: opts.DefaultLabelSelector, FieldSelector: opts.DefaultFieldSelector, Transform: opts.DefaultTransform,
		UnsafeDisableDeepCopy: opts.DefaultUnsafeDisableDeepCopy, EnableWatchBookmarks: opts.DefaultEnableWatchBookmarks, SyncPeriod: opts.SyncPeriod,
	}
}

// ofKind returns the settings of a kind without its namespaces.
func ofKind(by cache.ByObject) cache.Config {
	return cache.Config{
		LabelSelector: by.Label, FieldSelector: by.Field, Transform: by.Transform,
		UnsafeDisableDeepCopy: by.UnsafeDisableDeepCopy, EnableWatchBookmarks: by.EnableWatchBookmarks, SyncPeriod: by.SyncPeriod,
	}
}
