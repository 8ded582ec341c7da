package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/controllerruntime/internal/settings"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/inflight"
)

// Cache is a cache.Cache whose informers are leases of one [dynamicinformer.Factory]. It is safe for concurrent use. Objects that it
// returns are copies, unless UnsafeDisableDeepCopy is set; objects in handlers and index functions are shared and read-only.
type Cache struct {
	factory    *dynamicinformer.Factory
	made       *maker // creates the informers instead of the factory, except those of absent kinds; nil: none
	settings   *settings.Settings
	scheme     *runtime.Scheme
	mapper     meta.RESTMapper
	onlyCached bool // ReaderFailOnMissingInformer
	options    options

	started chan struct{}    // closes when the informers run
	ended   chan struct{}    // closes when they must end
	waiting inflight.Counter // goroutines of checkers, and of informers of NewInformer

	// mu guards the fields below. It is never held during I/O, waits or user code.
	mu        sync.RWMutex
	begun     bool                  // Start has been called
	informers map[key]*informer     // only put and RemoveInformer change it
	removals  int                   // the number of informers that have been removed
	adding    map[key]chan struct{} // closes when an informer has been added, or has failed
}

var _ cache.Cache = (*Cache)(nil)

// NewCache is [New] without options. It is a cache.NewCacheFunc, for the field NewCache of ctrl.Options.
func NewCache(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
	return WithOptions()(cfg, opts)
}

// WithOptions returns [New] with options as a cache.NewCacheFunc, for the field NewCache of ctrl.Options.
func WithOptions(options ...Option) cache.NewCacheFunc {
	return func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		c, err := New(cfg, opts, options...)
		if err != nil {
			return nil, err // not a nil *Cache
		}
		return c, nil
	}
}

// New returns a cache for the server of cfg. It has all options of cache.New, and the methods of cache.Cache have the same results and
// errors, except for the differences in the package comment. New asks the server about the kinds of opts.ByObject.
func New(cfg *rest.Config, opts cache.Options, options ...Option) (*Cache, error) {
	o := newOptions(options)
	opts, err := settings.Default(cfg, opts, o.allowAbsent)
	if err != nil {
		return nil, err
	}
	made, err := newMaker(cfg, &opts)
	if err != nil {
		return nil, err
	}
	factory, err := dynamicinformer.NewForConfigAndClient(cfg, opts.HTTPClient, o.ofFactory(&opts)...)
	if err != nil {
		return nil, err
	}
	return newCache(factory, made, &opts, o)
}

// newCache returns a cache on the informers of factory, which has the options of ofFactory, or of made if that is not nil. Opts have their
// defaults.
func newCache(factory *dynamicinformer.Factory, made *maker, opts *cache.Options, o options) (*Cache, error) {
	ofKinds, err := settings.New(opts)
	if err != nil {
		return nil, err
	}
	return &Cache{
		factory: factory, made: made, settings: ofKinds, scheme: opts.Scheme, mapper: opts.Mapper, onlyCached: opts.ReaderFailOnMissingInformer, options: o,
		started: make(chan struct{}), ended: make(chan struct{}), informers: map[key]*informer{}, adding: map[key]chan struct{}{},
	}, nil
}

// Factory returns the factory of the informers, for example for its status page. The cache starts it and shuts it down.
func (c *Cache) Factory() *dynamicinformer.Factory { return c.factory }

var errStarted = errors.New("informer already started")

// Start runs the informers until ctx ends, and waits for them. It fails if it has been called before.
func (c *Cache) Start(ctx context.Context) error {
	if !c.begin() { //nolint:contextcheck // informers of NewInformer end with c.ended
		return errStarted
	}
	ctx = klog.NewContext(ctx, log.Log.WithName("controller-runtime").WithName("cache"))
	c.factory.Start(ctx)
	close(c.started)
	<-ctx.Done()
	close(c.ended)
	c.waiting.Close()
	<-c.waiting.Done()
	return c.factory.Shutdown(context.WithoutCancel(ctx)) // waits for handlers, as in controller-runtime
}

// begin reports whether this is the first start, and runs the informers of NewInformer.
func (c *Cache) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return false
	}
	c.begun = true
	for _, i := range c.informers {
		c.runLocked(i)
	}
	return true
}

// runLocked runs i in a goroutine, if it is an informer of NewInformer and the cache has been started. The caller holds c.mu.
func (c *Cache) runLocked(i *informer) {
	made, is := i.lease.(*madeLease)
	if !is || !c.begun || !c.waiting.Begin() {
		return
	}
	go func() {
		defer c.waiting.End()
		made.run(c.ended)
	}()
}

// NeedLeaderElection returns false: a manager runs its cache before it is the leader.
func (c *Cache) NeedLeaderElection() bool { return false }

func (c *Cache) isStarted() bool {
	select {
	case <-c.started:
		return true
	default:
		return false
	}
}

// WaitForCacheSync waits until all informers have listed their kinds, and returns true; or until ctx ends, and returns false. It does not
// wait for an informer that fails for a reason that lasts until a person removes the cause, such as a missing permission: that affects only
// the reads of its kind.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
		return false
	}
	c.mu.RLock()
	adding := slices.Collect(maps.Values(c.adding))
	c.mu.RUnlock()
	for _, added := range adding {
		select {
		case <-added:
		case <-ctx.Done():
			return false
		}
	}
	c.mu.RLock()
	all := slices.Collect(maps.Values(c.informers))
	c.mu.RUnlock()
	settled := make([]bool, len(all))
	var waiting sync.WaitGroup
	for n, i := range all {
		waiting.Go(func() { settled[n] = i.settle(ctx) })
	}
	waiting.Wait()
	return !slices.Contains(settled, false)
}

// Get implements client.Reader.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(out, c.scheme)
	if err != nil {
		return err
	}
	all, err := c.watchesOf(gvk)
	if err != nil {
		return err
	}
	w, found := all.in(key.Namespace)
	if !found {
		return fmt.Errorf("unable to get: %v because of unknown namespace for the cache", key)
	}
	i, err := c.read(ctx, gvk, out, w)
	if err != nil {
		return err
	}
	return i.get(key, out, opts...)
}

var errContinue = errors.New("continue list option is not supported by the cache")

// List implements client.Reader. The objects are in no order.
func (c *Cache) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	gvk, object, err := c.objectOf(out)
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	all, err := c.watchesOf(gvk)
	if err != nil {
		return err
	}
	from := all.list
	if o.Namespace != metav1.NamespaceAll {
		w, found := all.in(o.Namespace)
		if !found {
			return fmt.Errorf("unable to list: %v because of unknown namespace for the cache", o.Namespace)
		}
		from = []watch{w}
	}
	var objects []runtime.Object
	for _, w := range from {
		i, err := c.read(ctx, gvk, object, w)
		if err != nil {
			return err
		}
		if o.Continue != "" {
			return errContinue
		}
		if objects, err = i.list(objects, o); err != nil {
			return err
		}
	}
	if err := meta.SetList(out, objects); err != nil {
		return err
	}
	out.SetContinue("continue-not-supported")
	return nil
}

// objectOf returns the kind of the items of list, and an empty object of the same form.
func (c *Cache) objectOf(list client.ObjectList) (schema.GroupVersionKind, runtime.Object, error) {
	gvk, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return gvk, nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	var object runtime.Object
	switch representationOf(list) {
	case asUnstructured:
		object = &unstructured.Unstructured{}
	case asMetadata:
		object = &metav1.PartialObjectMetadata{}
	default:
		object, err = c.scheme.New(gvk)
		return gvk, object, err
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return gvk, object, nil
}

// read returns the informer of a read. It has synced.
func (c *Cache) read(ctx context.Context, gvk schema.GroupVersionKind, object runtime.Object, w watch) (*informer, error) {
	started := c.isStarted()
	i, err := c.get(ctx, gvk, object, w, c.onlyCached)
	switch {
	case err != nil:
		return nil, err
	case !started:
		return nil, &cache.ErrCacheNotStarted{}
	}
	return i, i.wait(ctx)
}

// GetInformer implements cache.Informers. If the informer does not sync before ctx ends, the error has the reason: errors.As finds a
// [*status.NotSyncedError], and apierrors.IsTimeout is true for it.
func (c *Cache) GetInformer(ctx context.Context, object client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, err
	}
	return c.informerOf(ctx, gvk, object, opts)
}

// GetInformerForKind implements cache.Informers. Its objects are structured.
func (c *Cache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...cache.InformerGetOption) (cache.Informer, error) {
	object, err := c.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return c.informerOf(ctx, gvk, object, opts)
}

func (c *Cache) informerOf(ctx context.Context, gvk schema.GroupVersionKind, object runtime.Object, opts []cache.InformerGetOption) (cache.Informer, error) {
	var o cache.InformerGetOptions
	for _, opt := range opts {
		opt(&o)
	}
	blocks := c.isStarted() && (o.BlockUntilSynced == nil || *o.BlockUntilSynced)
	all, parts, err := c.partsOf(ctx, gvk, object)
	if err != nil {
		return nil, err
	}
	for _, i := range parts {
		if !blocks {
			break
		}
		if err := i.wait(ctx); err != nil {
			return nil, err
		}
	}
	if !all.byNamespace {
		return parts[all.list[0].namespace].view, nil
	}
	return newNamespacesInformer(c, parts), nil
}

// partsOf returns the watches of a kind, and the informer of each by its namespace. It does not wait until they have synced.
func (c *Cache) partsOf(ctx context.Context, gvk schema.GroupVersionKind, object runtime.Object) (watches, map[string]*informer, error) {
	all, err := c.watchesOf(gvk)
	if err != nil {
		return all, nil, err
	}
	parts := make(map[string]*informer, len(all.list))
	for _, w := range all.list {
		if parts[w.namespace], err = c.get(ctx, gvk, object, w, false); err != nil {
			return all, nil, err
		}
	}
	return all, parts, nil
}

// RemoveInformer implements cache.Informers. It releases the informer for the form of object. After it returns, no call of its handlers begins.
// Its requests end and its memory is freed, unless another form or a lease uses the same informer. In that case, its indexes stay until that
// informer ends, and their functions are called, but reads do not use them: index a field again before reads use it. RemoveInformer does not
// block.
func (c *Cache) RemoveInformer(_ context.Context, object client.Object) error {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return err
	}
	var removed []*informer
	c.mu.Lock()
	for k, i := range c.informers {
		if k.gvk == gvk && k.form == representationOf(object) {
			removed = append(removed, i)
			delete(c.informers, k)
			c.removals++
		}
	}
	c.mu.Unlock()
	for _, i := range removed {
		i.removed.Store(true)
		i.lease.Release()
	}
	return nil
}

// IndexField implements client.FieldIndexer. It does not wait for the informer.
func (c *Cache) IndexField(ctx context.Context, object client.Object, field string, values client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return err
	}
	_, parts, err := c.partsOf(ctx, gvk, object)
	if err != nil {
		return err
	}
	for _, i := range parts {
		if err := i.addIndexers(indexersOf(field, values)); err != nil {
			return err
		}
	}
	return nil
}
