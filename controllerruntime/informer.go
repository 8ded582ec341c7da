package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// representation is the form of objects.
type representation string

const (
	asStructured   representation = "structured"
	asUnstructured representation = "unstructured"
	asMetadata     representation = "metadata"
)

// representationOf returns the form of an object or a list.
func representationOf(object runtime.Object) representation {
	switch object.(type) {
	case runtime.Unstructured:
		return asUnstructured
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return asMetadata
	}
	return asStructured
}

// watch is the part of a kind that one informer watches.
type watch struct {
	namespace string // empty: all, or all others
	config    cache.Config
	usual     bool // the settings are those of the factory
	separate  bool // it is one of several of its kind
}

// watches are all parts of a kind.
type watches struct {
	list        []watch
	byNamespace bool // the kind is namespaced, and watched in each namespace
}

// in returns the watch that has the objects of namespace.
func (w *watches) in(namespace string) (watch, bool) {
	if !w.byNamespace {
		return w.list[0], true
	}
	for _, name := range []string{namespace, cache.AllNamespaces} {
		if n := slices.IndexFunc(w.list, func(w watch) bool { return w.namespace == name }); n >= 0 {
			return w.list[n], true
		}
	}
	return watch{}, false
}

// watchesOf returns the watches of gvk.
func (c *Cache) watchesOf(gvk schema.GroupVersionKind) (watches, error) {
	kind, usual := c.settings.Of(gvk)
	whole := watches{list: []watch{{config: kind.Whole, usual: usual}}}
	if len(kind.Namespaces) == 0 {
		return whole, nil
	}
	namespaced, err := apiutil.IsGVKNamespaced(gvk, c.mapper)
	switch {
	case err != nil && (!c.options.allowAbsent || !meta.IsNoMatchError(err)):
		return watches{}, err
	case err == nil && !namespaced:
		return whole, nil
	}
	all := watches{byNamespace: true}
	for _, namespace := range slices.Sorted(maps.Keys(kind.Namespaces)) {
		all.list = append(all.list, watch{namespace: namespace, config: kind.Namespaces[namespace], separate: true})
	}
	return all, nil
}

// key identifies an informer of a cache.
type key struct {
	gvk       schema.GroupVersionKind
	form      representation
	namespace string
}

// informer is a lease on an informer of the factory, with the settings for reading it in one form.
type informer struct {
	key
	cache   *Cache
	lease   lease
	example runtime.Object // an object of the form
	store   store
	view    cache.Informer // for the program
	shares  bool           // reads return cached objects
	removed atomic.Bool    // by RemoveInformer; another lease may keep the informer
}

// get returns the informer of a watch. If there is none, it creates one, or returns an error if onlyCached is true. It does not wait until the
// informer has synced.
func (c *Cache) get(ctx context.Context, gvk schema.GroupVersionKind, object runtime.Object, w watch, onlyCached bool) (*informer, error) {
	k := key{gvk, representationOf(object), w.namespace}
	c.mu.RLock()
	i := c.informers[k]
	c.mu.RUnlock()
	switch {
	case i != nil:
		return i, nil
	case onlyCached:
		return nil, &cache.ErrResourceNotCached{GVK: gvk}
	}
	for {
		c.mu.Lock()
		i, adding := c.informers[k], c.adding[k]
		done := make(chan struct{})
		if i == nil && adding == nil {
			c.adding[k] = done
		}
		c.mu.Unlock()
		switch {
		case i != nil:
			return i, nil
		case adding == nil:
			return c.put(ctx, k, object, w, done)
		}
		select { // another goroutine adds the informer; if it fails, this one tries
		case <-adding:
		case <-ctx.Done():
			return nil, timeout(object, ctx.Err())
		}
	}
}

// put adds an informer, and closes done.
func (c *Cache) put(ctx context.Context, k key, object runtime.Object, w watch, done chan struct{}) (*informer, error) {
	var i *informer
	defer func() { c.keep(k, i, done) }() //nolint:contextcheck // an informer ends with the cache
	object = emptyLike(object)            // a program fills its own later
	lease, err := c.acquire(ctx, k, object, w)
	if err == nil {
		i = c.newInformer(k, lease, object, &w)
		return i, nil
	}
	if ctx.Err() != nil {
		err = timeout(object, err)
	}
	return nil, err
}

// emptyLike returns an object of the same type and kind.
func emptyLike(object runtime.Object) runtime.Object {
	t := reflect.TypeOf(object)
	if t.Kind() != reflect.Pointer {
		return object
	}
	empty := reflect.New(t.Elem()).Interface().(runtime.Object) // of type t
	empty.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	return empty
}

// keep ends the addition of the informer under k, which is i, or nil if it has failed.
func (c *Cache) keep(k key, i *informer, done chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.adding, k)
	close(done)
	if i != nil {
		c.informers[k] = i
		c.runLocked(i)
	}
}

// timeout returns controller-runtime's error for an informer that has not synced in time, with the reason.
func timeout(object any, reason error) error {
	return fmt.Errorf("%w: %w", apierrors.NewTimeoutError(fmt.Sprintf("failed waiting for %T Informer to sync", object), 0), reason)
}

// acquire returns a lease on the informer of a watch.
func (c *Cache) acquire(ctx context.Context, k key, object runtime.Object, w watch) (lease, error) {
	opts := c.leaseOptions(k, object, &w)
	mapping, err := c.mapper.RESTMapping(k.gvk.GroupKind(), k.gvk.Version)
	switch {
	case err == nil && c.made != nil:
		return c.made.newLease(k, object, &w, mapping)
	case err == nil:
		lease, err := c.factory.Acquire(ctx, mapping.Resource, opts...)
		if errors.Is(err, dynamicinformer.ErrConflict) { // the program has a lease with other options
			return c.factory.Acquire(ctx, mapping.Resource, append(opts, dynamicinformer.WithSeparateInformer())...)
		}
		return lease, err
	case c.options.allowAbsent && meta.IsNoMatchError(err):
		return c.factory.AcquireGVK(ctx, k.gvk, opts...) // its resource is not known yet
	}
	return nil, err
}

func (c *Cache) leaseOptions(k key, object runtime.Object, w *watch) []dynamicinformer.LeaseOption {
	opts := []dynamicinformer.LeaseOption{dynamicinformer.WithLeaseName("controller-runtime")}
	if c.options.allowAbsent {
		opts = append(opts, dynamicinformer.WithAllowAbsent())
	}
	separate := w.separate
	if !w.usual {
		for _, opt := range ofWatch(w.namespace, &w.config) {
			opts = append(opts, opt)
		}
	}
	switch {
	case k.form == asUnstructured || c.options.packed:
	case k.form == asMetadata:
		separate = true
		opts = append(opts, dynamicinformer.WithMetadataOnly(), dynamicinformer.WithTransform(withKind(k.gvk, w.config.Transform)))
	default:
		separate = true
		opts = append(opts, dynamicinformer.WithGoType(object), dynamicinformer.WithTransform(withKind(schema.GroupVersionKind{}, w.config.Transform)))
	}
	if separate {
		opts = append(opts, dynamicinformer.WithSeparateInformer())
	}
	return opts
}

// withKind returns a transform that sets the kind of objects, and then calls next, which may be nil. In controller-runtime's informers,
// metadata has the kind of its object, and structured objects have none.
func withKind(gvk schema.GroupVersionKind, next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		if of, is := object.(runtime.Object); is {
			of.GetObjectKind().SetGroupVersionKind(gvk)
		}
		if next == nil {
			return object, nil
		}
		return next(object)
	}
}

// newInformer returns the informer for lease. If informers have been removed, its indexes have a number before their names: the indexes of a
// removed informer stay if its lease was not the last one, since client-go can't remove an index.
func (c *Cache) newInformer(k key, lease lease, object runtime.Object, w *watch) *informer {
	i := &informer{
		key: k, cache: c, lease: lease, example: object,
		store:  newStore(lease.Informer().GetIndexer(), k.form, object),
		shares: w.config.UnsafeDisableDeepCopy != nil && *w.config.UnsafeDisableDeepCopy,
	}
	c.mu.RLock()
	if c.removals > 0 {
		i.store.indexes = fmt.Sprintf("%d/%s", c.removals, i.store.indexes)
	}
	c.mu.RUnlock()
	if made, is := lease.(*madeLease); is { // it has no other user
		i.view = made.SharedIndexInformer
	} else {
		i.view = newView(i)
	}
	return i
}

// addIndexers adds indexers under the names that reads use.
func (i *informer) addIndexers(indexers toolscache.Indexers) error {
	own := make(toolscache.Indexers, len(indexers))
	for name, function := range indexers {
		own[i.store.indexes+name] = i.store.index(function)
	}
	return i.lease.Informer().AddIndexers(own)
}

// hasSynced reports whether the informer has listed its kind once, or the kind may be absent and is.
func (i *informer) hasSynced() bool {
	return i.lease.Informer().HasSynced() || i.cache.options.allowAbsent && isAbsent(i.lease.Status())
}

// isAbsent reports whether an informer has no type to list. While it starts, the type is served: a NotFound is from a server that does not
// know it yet.
func isAbsent(now status.Informer) bool {
	return now.State != status.StateStarting && hasNoType(now.Reason)
}

// hasNoType reports whether an informer that is not starting has no type to list.
func hasNoType(reason status.Reason) bool {
	switch reason {
	case status.ReasonNotFound, status.ReasonVersionNotServed, status.ReasonNotEstablished, status.ReasonNamesNotAccepted:
		return true
	}
	return false
}

// wait waits until the informer has synced, or its kind may be absent and is. It returns an error if ctx ends before, or with fail-fast if the
// informer fails for a reason that lasts.
func (i *informer) wait(ctx context.Context) error {
	if i.lease.Informer().HasSynced() {
		return nil
	}
	if ended := ctx.Err(); ended != nil { // also if it syncs now
		return timeout(i.example, cmp.Or(i.reason(ctx), ended))
	}
	if i.cache.options.failFast {
		if err := i.settled(ctx); err == nil || ctx.Err() == nil {
			return err
		}
	}
	for now := range i.lease.Watch(ctx) {
		if now.Listed || i.cache.options.allowAbsent && isAbsent(now) {
			return nil
		}
	}
	reason := i.reason(ctx)
	if reason == nil { // it has synced meanwhile
		return nil
	}
	return timeout(i.example, reason)
}

// reason returns why the informer has not synced.
func (i *informer) reason(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return i.lease.WaitForSync(ctx)
}

// awaitListedOrAbsent is awaitStatus without the status.
func (i *informer) awaitListedOrAbsent(ctx context.Context) bool {
	_, is := i.awaitStatus(ctx)
	return is
}

// awaitStatus waits until the informer has synced, or its kind is absent, and returns the status that says so. It returns false if ctx ends or the
// informer is removed before.
func (i *informer) awaitStatus(ctx context.Context) (status.Informer, bool) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { // another lease may keep the informer
		defer cancel()
		select {
		case <-i.lease.Done():
		case <-ctx.Done():
		}
	})
	for now := range i.lease.Watch(ctx) {
		if now.Listed || isAbsent(now) {
			return now, true
		}
	}
	return status.Informer{}, false
}

// settle waits until the informer has synced, has been removed, may be absent and is, or fails for a reason that lasts, and returns true; or
// until ctx or the cache ends.
func (i *informer) settle(ctx context.Context) bool {
	err := i.settled(ctx)
	if err == nil {
		return true
	}
	i.cache.mu.RLock()
	removed := i.cache.informers[i.key] != i
	i.cache.mu.RUnlock()
	failed, is := errors.AsType[*status.NotSyncedError](err)
	return ctx.Err() == nil && (removed || is && failed.Reason != status.ReasonStopped)
}

// settled waits until the informer has synced, or may be absent and is, and returns nil. It returns the reason if the informer fails for one
// that lasts, is removed, or ctx ends before. An informer that may be absent, and was when it was removed, is no failure.
func (i *informer) settled(ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx)
	var absent atomic.Bool
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer cancel()
		if i.cache.options.allowAbsent {
			absent.Store(i.awaitListedOrAbsent(waiting))
			return
		}
		select {
		case <-i.lease.Done():
		case <-waiting.Done():
		}
	})
	err := i.lease.WaitForSync(waiting, dynamicinformer.WithFailFast())
	failed, is := errors.AsType[*status.NotSyncedError](err)
	wasAbsent := is && i.cache.options.allowAbsent && ctx.Err() == nil && hasNoType(failed.Reason) // it may be served by now, or the informer removed
	if wasAbsent || absent.Load() || i.hasSynced() {
		return nil
	}
	return err
}
