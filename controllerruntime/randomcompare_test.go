package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// recording is a handler that records its events by object.
type recording struct {
	mu     sync.Mutex
	events map[string][]string
	loose  bool // only the last state of each object counts
}

func (h *recording) OnAdd(obj any, initial bool) { h.record(fmt.Sprintf("add %v", initial), obj) }
func (h *recording) OnUpdate(old, obj any)       { h.record("update", old, obj) }
func (h *recording) OnDelete(obj any)            { h.record("delete", obj) }

func (h *recording) record(event string, objects ...any) {
	key := "?"
	for _, object := range objects {
		if unknown, is := object.(toolscache.DeletedFinalStateUnknown); is {
			event += " unknown"
			object = unknown.Obj
		}
		key = toolscache.MetaObjectToName(object.(metav1.Object)).String()
		event += " " + textOf(object)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.loose:
		h.events[key] = append(h.events[key], event)
	case strings.HasPrefix(event, "delete"):
		delete(h.events, key)
	default:
		h.events[key] = []string{textOf(objects[len(objects)-1])}
	}
}

func (h *recording) take() map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	if h.loose {
		return maps.Clone(events)
	}
	h.events = map[string][]string{}
	return events
}

// contestant is a cache with the informers and handlers of a test.
type contestant struct {
	cache     cache.Cache
	informers []cache.Informer
	handlers  []*recording
	handles   []toolscache.ResourceEventHandlerRegistration
	of        []int // the informer of each handler
	ended     chan error
}

// race runs random operations on controller-runtime's cache and on gvrkit's.
type race struct {
	*testing.T
	*rand.Rand
	cluster *fakecluster.Cluster
	opts    cache.Options
	absent  bool            // WithAllowAbsent
	both    [2]*contestant  // controller-runtime's and gvrkit's
	seen    [2]*sync.Map    // the selections of their requests
	ctx     context.Context //nolint:containedctx // of the caches
	cancel  context.CancelFunc
	begun   bool // the caches have been started
	gaps    bool // the server fails at times
	down    bool // it fails

	mu  sync.Mutex
	log []string // the operations
}

var namespaceNames = []string{"a", "b", "c"}

func (r *race) config() (c cache.Config) {
	if r.IntN(3) == 0 {
		c.LabelSelector = labels.SelectorFromSet(labels.Set{"app": one(r.Rand, "x", "y")})
	}
	if r.IntN(4) == 0 {
		c.FieldSelector = r.fieldSelector()
	}
	if r.IntN(3) == 0 {
		c.Transform = r.transform()
	}
	if r.IntN(3) == 0 {
		c.UnsafeDisableDeepCopy = new(bool)
		*c.UnsafeDisableDeepCopy = r.IntN(2) == 0
	}
	return c
}

func (r *race) fieldSelector() fields.Selector {
	return one(r.Rand, fields.OneTermEqualSelector("metadata.namespace", "a"), fields.OneTermNotEqualSelector("metadata.name", "n1"),
		fields.Everything(), fields.OneTermEqualSelector("metadata.name", "n0"), fields.OneTermNotEqualSelector("metadata.namespace", "b"))
}

// transform returns a random transform. controller-runtime's informers transform the objects of a first list twice.
func (r *race) transform() toolscache.TransformFunc {
	mark := one(r.Rand, "one", "two")
	return one(r.Rand, cache.TransformStripManagedFields(), func(in any) (any, error) {
		object := in.(client.Object)
		annotations := map[string]string{"mark": mark}
		maps.Copy(annotations, object.GetAnnotations())
		object.SetAnnotations(annotations)
		return in, nil
	}, func(in any) (any, error) {
		object := in.(client.Object)
		object.SetLabels(map[string]string{"app": []string{"x", "y", "z"}[len(object.GetResourceVersion())%3]})
		return in, nil
	})
}

func (r *race) namespaces() map[string]cache.Config {
	all := map[string]cache.Config{}
	for _, name := range []string{"a", "b", cache.AllNamespaces} {
		if r.IntN(2) == 0 {
			all[name] = r.config()
		}
	}
	return all
}

func (r *race) options() {
	o := &r.opts
	c := r.config()
	o.DefaultLabelSelector, o.DefaultFieldSelector, o.DefaultTransform, o.DefaultUnsafeDisableDeepCopy = c.LabelSelector, c.FieldSelector, c.Transform, c.UnsafeDisableDeepCopy
	if r.IntN(2) == 0 { // with both, most objects are not selected
		o.DefaultLabelSelector, o.DefaultFieldSelector = nil, nil
	}
	if r.IntN(3) == 0 {
		o.DefaultNamespaces = r.namespaces()
	}
	o.ReaderFailOnMissingInformer = r.IntN(5) == 0
	switch r.IntN(8) {
	case 0:
		o.NewInformer = toolscache.NewSharedIndexInformer
	case 1:
		o.NewInformer = selecting
	}
	o.ByObject = map[client.Object]cache.ByObject{}
	for _, k := range kinds {
		if !k.served || r.IntN(2) == 0 {
			continue
		}
		c := r.config()
		by := cache.ByObject{Label: c.LabelSelector, Field: c.FieldSelector, Transform: c.Transform, UnsafeDisableDeepCopy: c.UnsafeDisableDeepCopy}
		if k.namespaced && r.IntN(2) == 0 {
			by.Namespaces = r.namespaces()
		}
		o.ByObject[k.in(one(r.Rand, forms...))] = by
	}
}

// selecting returns an informer whose requests have a selector of their own.
func selecting(lw toolscache.ListerWatcher, object runtime.Object, period time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	from := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.LabelSelector, opts.FieldSelector = "tier", "metadata.name!=n3"
			return from.ListWithContext(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error) {
			opts.LabelSelector, opts.FieldSelector = "tier", "metadata.name!=n3"
			return from.WatchWithContext(ctx, opts)
		},
	}, object, period, indexers)
}

func newRace(t *testing.T, seed uint64) *race {
	t.Helper()
	r := &race{T: t, Rand: rand.New(rand.NewPCG(seed, 11))} //nolint:gosec // test data
	var types []fakecluster.Type
	for _, k := range kinds {
		if k.served {
			types = append(types, fakecluster.Type{GVR: k.GroupVersionResource, Kind: k.Kind, Namespaced: k.namespaced})
		}
	}
	r.cluster = fakecluster.New(types...)
	r.options()
	r.opts.Scheme = newGizmoScheme(t)
	var options []Option
	packed := r.IntN(2) == 0
	if packed {
		options = append(options, WithPackedCaches())
	}
	if r.gaps = r.IntN(3) == 0 && !r.opts.ReaderFailOnMissingInformer; !r.gaps && r.IntN(3) == 0 {
		options = append(options, WithFailFast())
	}
	if r.absent = r.IntN(6) == 0; r.absent {
		options = append(options, WithAllowAbsent())
	}
	for n, newCache := range []cache.NewCacheFunc{cache.New, WithOptions(options...)} {
		r.seen[n] = &sync.Map{}
		r.opts.HTTPClient = &http.Client{Transport: transport{r.cluster, r.seen[n]}}
		c, err := newCache(&rest.Config{Host: "http://cluster", QPS: -1}, r.opts)
		if err != nil {
			t.Fatal(err)
		}
		r.both[n] = &contestant{cache: c, ended: make(chan error, 1)}
	}
	r.ctx, r.cancel = context.WithCancel(t.Context())
	r.notef("packed %v, absent %v, NewInformer %v, %+v", packed, r.absent, r.opts.NewInformer != nil, r.opts.DefaultNamespaces)
	return r
}

func (r *race) notef(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	r.log = append(r.log, line[:min(len(line), 250)])
}

func (r *race) failf(format string, args ...any) {
	r.Helper()
	r.Errorf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(r.log, "\n"))
}

// within returns a context that ends after a minute.
func (r *race) within() context.Context {
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	r.Cleanup(cancel)
	return ctx
}

// kindOfError returns what a program can find out about an error.
func kindOfError(err error) string {
	var notStarted *cache.ErrCacheNotStarted
	var notCached *cache.ErrResourceNotCached
	switch {
	case err == nil:
		return ""
	case apierrors.IsTimeout(err): // gvrkit's has the reason
		return "timeout"
	case meta.IsNoMatchError(err):
		return "no match"
	case errors.As(err, &notStarted):
		return "not started"
	case errors.As(err, &notCached):
		return "not cached: " + notCached.GVK.String()
	}
	return err.Error()
}

// same calls f for both caches, and compares the errors. It returns whether both have none.
func (r *race) same(f func(n int, c *contestant) error) bool {
	r.Helper()
	var errs [2]error
	for n, c := range r.both {
		errs[n] = f(n, c)
	}
	if kindOfError(errs[0]) != kindOfError(errs[1]) && !r.down { // the pauses of the caches differ
		r.failf("errors:\n%v\n%v", errs[0], errs[1])
	}
	return errs[0] == nil && errs[1] == nil
}

// settle waits, and compares the events of all handlers.
func (r *race) settle() {
	r.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	if r.down {
		return
	}
	for n := range r.both[0].handlers {
		if diff := cmp.Diff(r.both[0].handlers[n].take(), r.both[1].handlers[n].take()); diff != "" {
			r.failf("events of handler %d (-controller-runtime +gvrkit):\n%s", n, diff)
		}
		if a, b := r.both[0].handles[n].HasSynced(), r.both[1].handles[n].HasSynced(); a != b {
			r.failf("handler %d has synced: %v, %v", n, a, b)
		}
	}
	for n := range r.both[0].informers {
		a, b := r.both[0].informers[n], r.both[1].informers[n]
		if a.HasSynced() != b.HasSynced() || a.IsStopped() != b.IsStopped() {
			r.failf("informer %d: synced %v %v, stopped %v %v", n, a.HasSynced(), b.HasSynced(), a.IsStopped(), b.IsStopped())
		}
	}
}

func (r *race) kind() kind {
	if r.IntN(12) == 0 && !r.absent {
		return kinds[servedKinds]
	}
	return kinds[r.IntN(servedKinds)]
}

// write creates, updates or deletes a random object.
func (r *race) write() {
	k := kinds[r.IntN(servedKinds)]
	namespace, name := "", fmt.Sprintf("n%d", r.IntN(4))
	if k.namespaced {
		namespace = one(r.Rand, namespaceNames...)
	}
	to := r.cluster.Resource(k.GroupVersionResource).Namespace(namespace)
	former, err := to.Get(r.ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		object := randomObject(r.Rand, k, nil)
		object.SetName(name)
		r.notef("create %s %s/%s: %v", k.Kind, namespace, name, object.Object)
		_, err = to.Create(r.ctx, object, metav1.CreateOptions{})
	case r.IntN(3) == 0:
		r.notef("delete %s %s/%s", k.Kind, namespace, name)
		err = to.Delete(r.ctx, name, metav1.DeleteOptions{})
	default:
		object := randomObject(r.Rand, k, former)
		r.notef("update %s %s/%s: %v", k.Kind, namespace, name, object.Object)
		_, err = to.Update(r.ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		r.Fatal(err)
	}
}

func (r *race) get() {
	k, as := r.kind(), one(r.Rand, forms...)
	key := client.ObjectKey{Name: fmt.Sprintf("n%d", r.IntN(5))}
	if k.namespaced || r.IntN(4) == 0 {
		key.Namespace = one(r.Rand, "", "a", "b", "c")
	}
	var opts []client.GetOption
	if k.namespaced && r.IntN(4) == 0 { // for others, controller-runtime's cache of several namespaces ignores the option
		opts = append(opts, client.UnsafeDisableDeepCopy)
	}
	r.notef("get %s %s %v %v", as, k.Kind, key, opts)
	var objects [2]client.Object
	if !r.same(func(n int, c *contestant) error {
		objects[n] = k.in(as)
		return c.cache.Get(r.within(), key, objects[n], opts...)
	}) || r.down {
		return
	}
	if diff := cmp.Diff(textOf(objects[0]), textOf(objects[1])); diff != "" {
		r.failf("objects (-controller-runtime +gvrkit):\n%s", diff)
	}
	if opts == nil && !r.mayShare() {
		spoil(objects[0])
		spoil(objects[1])
	}
}

// mayShare reports whether options let reads return cached objects.
func (r *race) mayShare() bool {
	configs := slices.Collect(maps.Values(r.opts.DefaultNamespaces))
	configs = append(configs, cache.Config{UnsafeDisableDeepCopy: r.opts.DefaultUnsafeDisableDeepCopy})
	for _, by := range r.opts.ByObject {
		configs = append(slices.AppendSeq(configs, maps.Values(by.Namespaces)), cache.Config{UnsafeDisableDeepCopy: by.UnsafeDisableDeepCopy})
	}
	return slices.ContainsFunc(configs, func(c cache.Config) bool { return c.UnsafeDisableDeepCopy != nil && *c.UnsafeDisableDeepCopy })
}

// fieldName returns the name of a field that may be indexed.
func (r *race) fieldName() string { return one(r.Rand, "size", "name", "app") }

var selectors = []string{"", "app", "!app", "app=x", "app!=x", "app in (x,y)", "tier notin (1)", "app=x,tier", "tier=", "app>1", "tier>0", "tier<2"}

// listOptions returns random options of a list.
func (r *race) listOptions(k kind) *client.ListOptions {
	o := &client.ListOptions{}
	if r.IntN(2) == 0 {
		o.Namespace = one(r.Rand, namespaceNames...)
	}
	if r.IntN(3) == 0 {
		var err error
		if o.LabelSelector, err = labels.Parse(one(r.Rand, selectors...)); err != nil {
			r.Fatal(err)
		}
	}
	switch n := r.IntN(20); {
	case n == 0:
		o.FieldSelector = r.fieldSelector()
	case n < 7:
		o.FieldSelector = fields.OneTermEqualSelector(r.fieldName(), one(r.Rand, "0", "1", "x", "n1", ""))
		if r.IntN(3) == 0 {
			o.FieldSelector = fields.AndSelectors(o.FieldSelector, fields.OneTermEqualSelector(r.fieldName(), one(r.Rand, "0", "1", "x", "n1", "n2")))
		}
	}
	if r.IntN(5) == 0 {
		o.Limit = int64(r.IntN(4) - 1)
	}
	if r.IntN(30) == 0 && k.served && r.begun && !r.opts.ReaderFailOnMissingInformer { // it is the only error
		o.Continue, o.Namespace = "next", ""
	}
	if r.IntN(4) == 0 {
		shares := r.IntN(2) == 0
		o.UnsafeDisableDeepCopy = &shares
	}
	return o
}

func (r *race) list() {
	k, as := r.kind(), one(r.Rand, forms...)
	o := r.listOptions(k)
	r.notef("list %s %s %+v", as, k.Kind, *o)
	var lists [2]client.ObjectList
	if !r.same(func(n int, c *contestant) error {
		lists[n] = k.listIn(as)
		return c.cache.List(r.within(), lists[n], o)
	}) || r.down {
		return
	}
	var texts [2][]string
	for n, list := range lists {
		items, err := meta.ExtractList(list)
		if err != nil {
			r.Fatal(err)
		}
		texts[n] = textsOf(items)
		if o.Limit > 0 { // any objects
			texts[n] = []string{fmt.Sprint(len(items))}
		}
		if !r.mayShare() && (o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy) {
			for _, item := range items {
				spoil(item.(client.Object))
			}
		}
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		r.failf("list (-controller-runtime +gvrkit):\n%s", diff)
	}
	if a, b := lists[0].GetContinue(), lists[1].GetContinue(); a != b || lists[0].GetObjectKind().GroupVersionKind() != lists[1].GetObjectKind().GroupVersionKind() {
		r.failf("lists:\n%v\n%v", lists[0], lists[1])
	}
}

// textsOf returns the texts of objects, sorted.
func textsOf(objects []runtime.Object) []string {
	texts := make([]string, len(objects))
	for n, object := range objects {
		texts[n] = textOf(object)
	}
	slices.Sort(texts)
	return texts
}

// informer gets an informer, and reports whether it has.
func (r *race) informer() bool {
	k, as := r.kind(), one(r.Rand, forms...)
	var opts []cache.InformerGetOption
	if r.IntN(2) == 0 {
		opts = append(opts, cache.BlockUntilSynced(r.IntN(2) == 0))
	}
	byKind := as == asStructured && r.IntN(2) == 0
	r.notef("informer %s %s", as, k.Kind)
	var informers [2]cache.Informer
	if !r.same(func(n int, c *contestant) (err error) {
		if byKind {
			informers[n], err = c.cache.GetInformerForKind(r.within(), k.GroupVersionKind, opts...)
		} else {
			informers[n], err = c.cache.GetInformer(r.within(), k.in(as), opts...)
		}
		return err
	}) {
		return false
	}
	for n, c := range r.both {
		c.informers = append(c.informers, informers[n])
	}
	return true
}

// handle adds a handler to an informer.
func (r *race) handle() {
	n := len(r.both[0].informers)
	if n > 0 && r.IntN(2) == 0 {
		n = r.IntN(n)
	} else if !r.informer() {
		return
	}
	r.notef("handler %d of informer %d", len(r.both[0].handlers), n)
	var errs [2]error
	for side, c := range r.both {
		h := &recording{loose: r.gaps, events: map[string][]string{}}
		var handle toolscache.ResourceEventHandlerRegistration
		if handle, errs[side] = c.informers[n].AddEventHandler(h); errs[side] == nil {
			c.handlers, c.handles, c.of = append(c.handlers, h), append(c.handles, handle), append(c.of, n)
		}
	}
	if (errs[0] == nil) != (errs[1] == nil) {
		r.failf("errors:\n%v\n%v", errs[0], errs[1])
	}
}

// unhandle removes a handler.
func (r *race) unhandle() {
	if len(r.both[0].handlers) == 0 {
		return
	}
	n := r.IntN(len(r.both[0].handlers))
	r.notef("remove handler %d", n)
	r.same(func(_ int, c *contestant) error {
		err := c.informers[c.of[n]].RemoveEventHandler(c.handles[n])
		c.handlers, c.handles, c.of = slices.Delete(c.handlers, n, n+1), slices.Delete(c.handles, n, n+1), slices.Delete(c.of, n, n+1)
		return err
	})
}

// valuesOf returns the index function of a field.
func valuesOf(field string) client.IndexerFunc {
	return func(object client.Object) []string {
		tree, isTree := object.(*unstructured.Unstructured)
		gizmo := gizmoOf(object)
		switch {
		case field == "name":
			return []string{object.GetName()}
		case field == "app" && object.GetLabels()["app"] == "":
			return nil
		case field == "app":
			return []string{object.GetLabels()["app"], "x"}
		case isTree:
			return []string{fmt.Sprint(tree.Object["size"])}
		case gizmo != nil:
			return []string{fmt.Sprint(gizmo.Size)}
		}
		return []string{object.GetResourceVersion()}
	}
}

// index indexes a field.
func (r *race) index() {
	k, as, field := r.kind(), one(r.Rand, forms...), r.fieldName()
	r.notef("index %s of %s %s", field, as, k.Kind)
	r.same(func(_ int, c *contestant) error {
		err := c.cache.IndexField(r.within(), k.in(as), field, valuesOf(field))
		if err != nil && strings.Contains(err.Error(), "indexer conflict") {
			return errors.New("indexer conflict") // the rest is the name of the index
		}
		return err
	})
}

// remove removes an informer.
func (r *race) remove() {
	k, as := kinds[r.IntN(servedKinds)], one(r.Rand, forms...)
	r.notef("remove informer of %s %s", as, k.Kind)
	r.same(func(_ int, c *contestant) error { return c.cache.RemoveInformer(r.within(), k.in(as)) })
}

// fail makes the server fail, or ends that.
func (r *race) fail() {
	if !r.gaps {
		return
	}
	if r.down {
		r.notef("the server does not fail any more")
		r.recover()
		return
	}
	r.down = true
	only := one(r.Rand, "", "a", "b", "all")
	failure := one[error](r.Rand, apierrors.NewInternalError(errors.New("down")), apierrors.NewTooManyRequests("later", 1), apierrors.NewTimeoutError("slow", 1))
	r.notef("the server fails in %q: %v", only, failure)
	r.cluster.Intercept(func(_ context.Context, request fakecluster.Request) error {
		if (request.Verb == "list" || request.Verb == "watch") && (only == "all" || request.Namespace == only) {
			return failure
		}
		return nil
	})
	for _, k := range kinds {
		if r.IntN(2) == 0 {
			r.cluster.CloseWatches(k.GroupVersionResource)
		}
	}
}

// recover ends failures of the server.
func (r *race) recover() {
	r.down = false
	for _, k := range kinds {
		if r.gaps && r.IntN(6) == 0 { // client-go's relist sends an update of each object
			r.cluster.Expire(k.GroupVersionResource)
		}
	}
	r.cluster.Intercept(nil)
	time.Sleep(5 * time.Minute)
}

// start starts the caches.
func (r *race) start() {
	if r.begun {
		return
	}
	if r.down { // reads before the start have added informers of some namespaces, in a random order
		r.recover()
	}
	r.begun = true
	r.notef("start")
	r.same(func(_ int, c *contestant) error {
		go func() { c.ended <- c.cache.Start(r.ctx) }()
		synctest.Wait()
		if !c.cache.WaitForCacheSync(r.within()) {
			return errors.New("not synced")
		}
		return nil
	})
}

// step is a random operation. Before the start, and while lists fail, controller-runtime's informers of several namespaces that are removed, and
// their handlers, leave goroutines.
func (r *race) step() {
	switch n := r.IntN(20); {
	case n < 6:
		for range 1 + r.IntN(3) {
			r.write()
		}
	case n < 9:
		r.get()
	case n < 13:
		r.list()
	case n < 15:
		r.handle()
	case n < 17:
		r.index()
	case n == 17 && r.begun && !r.down:
		r.unhandle()
	case n == 18 && r.begun && !r.down:
		r.remove()
	default:
		r.fail()
	}
}

func (r *race) run(steps int) {
	for step := 0; step < steps && !r.Failed(); step++ {
		if step == steps/4 {
			r.start()
		}
		r.step()
		r.settle()
	}
	r.start()
	r.recover()
	r.settle()
	before := r.compareContents()
	if diff := cmp.Diff(r.requests(0), r.requests(1)); diff != "" {
		r.failf("requests (-controller-runtime +gvrkit):\n%s", diff)
	}
	r.cancel()
	r.same(func(_ int, c *contestant) error { return <-c.ended })
	synctest.Wait()
	if diff := cmp.Diff(before, r.compareContents()); diff != "" {
		r.failf("the caches after their end (-before +after):\n%s", diff)
	}
}

// compareContents compares the objects of all kinds in all forms, and returns them.
func (r *race) compareContents() map[string][]string {
	r.Helper()
	var all [2]map[string][]string
	for n, c := range r.both {
		all[n] = map[string][]string{}
		for _, k := range kinds[:servedKinds] {
			for _, as := range forms {
				list := k.listIn(as)
				err := c.cache.List(r.within(), list)
				items, _ := meta.ExtractList(list)
				all[n][fmt.Sprint(k.GroupVersionKind, as)] = append(textsOf(items), kindOfError(err))
			}
		}
	}
	if diff := cmp.Diff(all[0], all[1]); diff != "" {
		r.failf("contents (-controller-runtime +gvrkit):\n%s", diff)
	}
	return all[0]
}

// requests returns what the requests of a cache have selected.
func (r *race) requests(n int) []string {
	var all []string
	r.seen[n].Range(func(request, _ any) bool {
		all = append(all, request.(string))
		return true
	})
	slices.Sort(all)
	return all
}

// The same operations have the same results as on controller-runtime's cache: with random options, objects, selectors, indexes, handlers and
// informers that come and go, and a server that fails at times.
func TestCache_AsControllerRuntimes(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newRace(t, seed).run(60) })
		})
	}
}
