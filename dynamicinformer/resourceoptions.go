package dynamicinformer

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gvrkit/gvrkit/discovery"
)

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
