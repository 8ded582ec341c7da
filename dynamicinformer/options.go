package dynamicinformer

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/informermetrics"
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
