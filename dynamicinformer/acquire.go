package dynamicinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/form"
	"github.com/gvrkit/gvrkit/internal/handlers"
	"github.com/gvrkit/gvrkit/internal/informer"
	"github.com/gvrkit/gvrkit/internal/source"
)

// Acquire returns a lease on the informer for gvr. With discovery, it first validates that gvr is served, in a version that the lease's policy
// allows, and can be listed and watched. Ctx limits only this validation, and has no effect on the lease or on other callers. Acquire does not wait
// for the list. It sends no request if there is an informer on gvr whose type is served, or if the resolver runs and knows the type.
//
// Errors are [*discovery.RefError], [*OptionError], the errors of [discovery.Resolver.Validate], a [*ConflictError] if other leases use
// the informer with other options, and [ErrShutDown]. With [WithAllowAbsent], it is no error if the type is not served or discovery is
// inconclusive. If the factory has not been started, the informer waits for Start.
func (f *Factory) Acquire(ctx context.Context, gvr schema.GroupVersionResource, opts ...LeaseOption) (*Lease, error) {
	if err := discovery.CheckGVR(gvr); err != nil {
		return nil, fmt.Errorf("dynamicinformer: acquire: %w", err)
	}
	return f.acquire(ctx, key{gvr: gvr}, opts)
}

// acquire is Acquire for k, which has no options yet.
func (f *Factory) acquire(ctx context.Context, k key, opts []LeaseOption) (*Lease, error) {
	o, err := f.leaseOptions(opts)
	if err = cmp.Or(checkContext(ctx), err); err != nil {
		return nil, fmt.Errorf("dynamicinformer: acquire: %s: %w", discovery.RefOf(k.gvr), err)
	}
	k.versions, k.form = o.versions, o.form
	if o.separate {
		k.separate = f.singles.Add(1)
	}
	l := &Lease{factory: f}
	res, served := f.serves(k, &o)
	if !served {
		res, err = f.validate(ctx, &k, &o)
		if err = cmp.Or(err, optionError(form.Fits(k.form, res))); err != nil {
			return nil, fmt.Errorf("dynamicinformer: acquire: %w", err)
		}
	}
	if res.GVK.Kind != "" {
		found := res // on the heap
		l.validated = &found
	}
	for {
		if err := f.join(l, k, &o); err != nil {
			return nil, err
		}
		// A user may have run the informer without the factory, and stopped it; see ForResource.
		if !l.entry.informer.IsStopped() || !f.replace(l.entry, l) {
			break
		}
	}
	l.view = &informer.View{SharedIndexInformer: l.entry.informer, Resource: discovery.RefOf(l.entry.gvr), Add: l.AddEventHandlerWithOptions, Remove: l.RemoveEventHandler}
	if err = optionError(form.Fits(k.form, l.Resource())); err != nil { // others may have acquired it before its type was known
		err = fmt.Errorf("dynamicinformer: acquire: %w", err)
	} else {
		err = f.index(l.entry, o.indexers)
	}
	if err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// serves reports whether there is an entry that a lease with o can share, and whose type is served, and returns its resource: the entry may have ended
// when the lease joins. By name, it must be what the name means. A stopped informer does not follow its type.
func (f *Factory) serves(k key, o *leaseOptions) (res discovery.Resource, is bool) {
	f.mu.Lock()
	e, differs := f.sharedLocked(k, o)
	f.mu.Unlock()
	if e == nil || differs != nil || e.informer.IsStopped() {
		return res, false
	}
	now := e.state.Snapshot()
	return now.Resource(), now.Serving == source.Served && now.Discovery.Err == nil
}

// validate asks discovery whether the type of k can have an informer, and returns the resource. The resource
// is zero without discovery, or if the type is absent and o allows that.
func (f *Factory) validate(ctx context.Context, k *key, o *leaseOptions) (discovery.Resource, error) {
	f.mu.Lock()
	begun := f.resolver.begun()
	f.mu.Unlock()
	f.awaitResolver(ctx, begun)
	if f.options.resolver == nil || closed(f.closing) { // join has the error of a factory that is closing: its resolver has been stopped
		return discovery.Resource{}, nil
	}
	res, err := f.resolve(ctx, k, o.verbs()...)
	if o.absent && ctx.Err() == nil && (errors.Is(err, discovery.ErrNotServed) || errors.Is(err, discovery.ErrInconclusive)) {
		return discovery.Resource{}, nil
	}
	return res, err
}

// join makes l a lease on the entry under k. If there is none, it creates one.
func (f *Factory) join(l *Lease, k key, o *leaseOptions) error {
	l.handlers = handlers.NewGroup(o.name, o.handlers) // the entry of an earlier call may have ended, and closed the group
	if joined, err := f.tryJoin(l, k, o, nil); joined || err != nil {
		return err
	}
	made := f.newEntry(k, o.settings, nil) // asks the client: not under f.mu
	if k.ref != "" && l.validated != nil {
		made.state.Means(l.validated.GVR)
	}
	_, err := f.tryJoin(l, k, o, made)
	return err
}

// tryJoin makes l a lease on the existing entry, or on made if there is none and made is not nil. It reports whether l has an entry.
func (f *Factory) tryJoin(l *Lease, k key, o *leaseOptions, made *entry) (bool, error) {
	f.mu.Lock()
	if closed(f.closing) {
		f.mu.Unlock()
		return false, ErrShutDown
	}
	e, differs := f.sharedLocked(k, o)
	if differs != nil && e.none() { // it lingers
		f.forgetLocked(e)
		e, differs = nil, nil
	}
	if differs != nil {
		f.mu.Unlock()
		return false, differs.conflictError(k.gvr)
	}
	defer f.mu.Unlock()
	switch {
	case e == nil && made == nil:
		return false, nil
	case e == nil:
		e = made
		f.putLocked(e)
	}
	e.add(l)
	e.linger = max(e.linger, o.linger)
	e.changed.Broadcast()
	l.entry = e
	if f.ctx != nil {
		f.startLocked(f.ctx, e)
	}
	return true, nil
}

// sharedLocked returns the entry that a lease under k with o can share: that of ForResource, or the one under k. If there is none, it returns
// nil, or the entry under k and its difference from o. The caller holds f.mu.
func (f *Factory) sharedLocked(k key, o *leaseOptions) (*entry, *difference) {
	if e := f.ofForResourceLocked(k); e != nil && !e.ending() && conflict(&e.settings, &o.settings) == nil {
		return e, nil
	}
	e := f.entries[k]
	if e == nil || e.ending() {
		return nil, nil
	}
	return e, conflict(&e.settings, &o.settings)
}

// leaseOptions are the values of the options of one lease.
type leaseOptions struct {
	settings
	versions         discovery.VersionPolicy
	form             form.Form
	absent, separate bool
	linger           time.Duration
	name             string
	handlers         handlers.Options
}

// leaseOptions returns the values of opts, or an [*OptionError].
func (f *Factory) leaseOptions(opts []LeaseOption) (leaseOptions, error) {
	o := leaseOptions{settings: f.options.settings, form: f.options.form}
	for _, opt := range opts {
		if opt != nil {
			opt.applyToLease(&o)
		}
	}
	o.packed = o.packed && o.form == form.Unstructured{} // other forms ignore it
	return o, cmp.Or(o.check(), optionError(o.form.Check(&f.clients)))
}

// check returns an [*OptionError] if an option has an invalid value.
func (o *leaseOptions) check() error {
	if o.versions == discovery.EveryVersion() {
		return &OptionError{Option: "WithVersionPolicy", Value: o.versions.String(), Err: errors.New("a lease is on one version")}
	}
	return o.settings.check()
}
