package cases

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// limit is the longest wait for something that must happen.
const limit = 30 * time.Second

// synced is the result of a wait that succeeds.
const synced = "synced"

// noReason is the result of a wait that fails, and nothing is the state, of an implementation that has neither.
const (
	noReason = "no reason"
	nothing  = "nothing"
)

// watcher watches one type, with gvrkit or with client-go.
type watcher interface {
	// wait waits until the cache has the first list, at most limit. It returns synced, or what the implementation
	// says about the cause.
	wait(ctx context.Context, limit time.Duration) string
	// state is what the implementation says about the type now.
	state() string
	// objects returns the objects of the cache, and whether there is a cache to read.
	objects() ([]*unstructured.Unstructured, bool)
	// informer is the informer of now. It is nil if there is none.
	informer() cache.SharedIndexInformer
	// retry makes the implementation send a request at once, if it can.
	retry()
	// leave ends the use of the type. It does not end the factory.
	leave()
	stop()
}

// implementation is gvrkit or client-go.
type implementation struct {
	name string
	// watch watches the type in namespaces; none: in all.
	watch func(s *scenario, gvr schema.GroupVersionResource, handler cache.ResourceEventHandler, namespaces ...string) watcher
	// factory returns a factory for scenarios about factories and handlers. It has client-go's interface.
	factory func(config *rest.Config, client *http.Client, tweak dynamicinformer.TweakListOptionsFunc) (upstream.DynamicSharedInformerFactory, error)
	// mapper returns a RESTMapper, which works until the end of the test.
	mapper func(s *scenario) meta.RESTMapper
}

var implementations = map[string]implementation{
	"gvrkit":    {"gvrkit", watchByLease, newGvrkitFactory, newGvrkitMapper},
	"client-go": {"client-go", watchByRestartLoops, newClientGoFactory, newClientGoMapper},
}

// scenario runs one case with one implementation, on a type of its own.
type scenario struct {
	*testing.T
	ctx context.Context //nolint:containedctx // that of the test
	implementation
	admin  dynamic.Interface // not through the proxy
	proxy  *faultproxy.Proxy
	config *rest.Config // of the proxy
	http   *http.Client
	crd    *unstructured.Unstructured
	gvr    schema.GroupVersionResource
	log    *log
	// settled is how often settle was called.
	settled int
}

var serial atomic.Int64

func newScenario(t *testing.T, with implementation) *scenario {
	t.Helper()
	return newScenarioOn(t, with, server.Config())
}

// newScenarioOn returns a scenario on the server of config.
func newScenarioOn(t *testing.T, with implementation, config *rest.Config) *scenario {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	s := &scenario{T: t, ctx: ctx, implementation: with, log: &log{}}
	config.QPS = -1
	behind, err := rest.HTTPClientFor(config)
	s.check(err)
	s.admin, err = dynamic.NewForConfigAndClient(config, behind)
	s.check(err)
	s.proxy, err = faultproxy.Start(config.Host, behind.Transport)
	s.check(err)
	s.config = &rest.Config{Host: s.proxy.URL(), QPS: -1}
	s.http, err = rest.HTTPClientFor(s.config)
	s.check(err)
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		s.check(s.proxy.Close())
		behind.CloseIdleConnections()
	})
	group := fmt.Sprintf("case-%d.example.com", serial.Add(1))
	s.crd = fixture.NewCRD(group, "Ship", "v1")
	s.gvr = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"}
	return s
}

func (s *scenario) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// eventually reports whether condition holds before limit.
func eventually(ctx context.Context, limit time.Duration, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return condition()
		}
	}
	return true
}

// must waits for a condition that any implementation must meet.
func (s *scenario) must(what string, condition func() bool) {
	s.Helper()
	if !eventually(s.ctx, limit, condition) {
		s.Fatalf("not within %v: %s; %s", limit, what, s.log)
	}
}

// watch starts a watcher of gvr in namespaces, with the log as its handler, until the end of the test. Without namespaces, it is of all.
func (s *scenario) watch(gvr schema.GroupVersionResource, namespaces ...string) watcher {
	s.Helper()
	w := s.implementation.watch(s, gvr, s.log, namespaces...)
	s.Cleanup(w.stop)
	return w
}

// install creates CRDs, until the end of the test. It returns when their objects can be created.
func (s *scenario) install(crds ...*unstructured.Unstructured) {
	s.Helper()
	s.check(server.InstallCRDs(s.ctx, crds...))
}

// define creates a CRD and does not wait.
func (s *scenario) define(crd *unstructured.Unstructured) {
	s.Helper()
	_, err := s.admin.Resource(fixture.Definitions).Create(s.ctx, crd, metav1.CreateOptions{})
	s.check(err)
}

// undefine deletes a CRD, and waits until it is gone.
func (s *scenario) undefine(crd *unstructured.Unstructured) {
	s.Helper()
	s.check(fixture.Undefine(s.ctx, s.admin, crd.GetName()))
}

func (s *scenario) patchCRD(patch string) {
	s.Helper()
	_, err := s.admin.Resource(fixture.Definitions).Patch(s.ctx, s.crd.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.check(err)
}

// serves replaces the versions of the type's CRD that are served.
func (s *scenario) serves(versions ...string) {
	s.Helper()
	crd, err := s.admin.Resource(fixture.Definitions).Get(s.ctx, s.crd.GetName(), metav1.GetOptions{})
	s.check(err)
	s.serveOnly(crd, versions...)
	_, err = s.admin.Resource(fixture.Definitions).Update(s.ctx, crd, metav1.UpdateOptions{})
	s.check(err)
}

// serveOnly sets which versions of crd are served.
func (s *scenario) serveOnly(crd *unstructured.Unstructured, versions ...string) {
	s.Helper()
	list, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	s.check(err)
	for _, each := range list {
		version := each.(map[string]any)
		version["served"] = slices.Contains(versions, version["name"].(string))
	}
	s.check(unstructured.SetNestedSlice(crd.Object, list, "spec", "versions"))
}

func (s *scenario) ships() dynamic.ResourceInterface {
	return s.admin.Resource(s.gvr).Namespace("harbor")
}

func name(i int) string { return fmt.Sprintf("ship-%03d", i) }

// create creates the objects from number first on.
func (s *scenario) create(first, count int, change ...func(*unstructured.Unstructured)) {
	s.Helper()
	var all sync.WaitGroup
	errs := make(chan error, count)
	for worker := range 4 {
		all.Go(func() {
			for i := first + worker; i < first+count; i += 4 {
				ship := fixture.NewObject(s.gvr.GroupVersion().WithKind("Ship"), name(i), i, nil)
				for _, f := range change {
					f(ship)
				}
				errs <- fixture.RetryUntilServed(s.ctx, func() error {
					_, err := s.ships().Create(s.ctx, ship, metav1.CreateOptions{})
					return err
				})
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		s.check(err)
	}
}

func (s *scenario) patch(name, patch string) {
	s.Helper()
	s.patchIn("harbor", name, patch)
}

func (s *scenario) patchIn(namespace, name, patch string) {
	s.Helper()
	s.check(fixture.RetryUntilServed(s.ctx, func() error {
		_, err := s.admin.Resource(s.gvr).Namespace(namespace).Patch(s.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}))
}

// resize changes an object. It has arrived when the cache has its new size.
func (s *scenario) resize(i, size int) {
	s.Helper()
	s.patch(name(i), fmt.Sprintf(`{"spec":{"size":%d}}`, size))
}

func (s *scenario) delete(i int) {
	s.Helper()
	s.check(s.ships().Delete(s.ctx, name(i), metav1.DeleteOptions{}))
}

// has returns a condition: the cache has object i with this size.
func has(w watcher, i, size int) func() bool {
	return func() bool {
		all, _ := w.objects()
		for _, obj := range all {
			if got, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size"); obj.GetName() == name(i) && got == int64(size) {
				return true
			}
		}
		return false
	}
}

// ready creates the type with objects, and watches it until the handler has them.
func (s *scenario) ready(objects int) watcher {
	s.Helper()
	s.install(s.crd)
	s.create(0, objects)
	w := s.watch(s.gvr)
	if got := w.wait(s.ctx, limit); got != synced {
		s.Fatalf("the wait returns %s", got)
	}
	s.must("the handler has all objects", func() bool { return s.log.counts().adds == objects })
	return w
}

// ofType matches requests for the objects of the type.
func (s *scenario) ofType() faultproxy.Match { return faultproxy.Resource(s.gvr.Group, s.gvr.Resource) }

// offline cuts the watch, runs change while requests for the objects fail, and makes all earlier versions expire.
func (s *scenario) offline(change func()) {
	s.Helper()
	online := s.proxy.Inject(s.ofType(), faultproxy.Fail(503))
	s.proxy.CutWatches(s.ofType())
	change()
	changed, err := s.ships().List(s.ctx, metav1.ListOptions{})
	s.check(err)
	s.proxy.Inject(faultproxy.All(s.ofType(), faultproxy.Verb("watch"), earlierThan(changed.GetResourceVersion())), faultproxy.GoneStatus()) // after the other fault
	online()
}

// earlierThan matches requests for events since an earlier version. A watch-list is no such request: it gets the objects first.
func earlierThan(version string) faultproxy.Match {
	return func(r faultproxy.Request) bool {
		query, err := url.ParseQuery(r.Query)
		if err != nil || query.Get("sendInitialEvents") != "" {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(query.Get("resourceVersion"), version)
		return err == nil && order < 0
	}
}

// observation is how long an implementation is observed for what it must not do. It is the same time for each one.
const observation = 5 * time.Second

// observe lets the time of an observation pass.
func (s *scenario) observe() {
	s.Helper()
	select {
	case <-time.After(observation):
	case <-s.ctx.Done():
		s.Fatal(s.ctx.Err())
	}
}

// cause is the result of a wait of w for the time of an observation. If w has states and gives another reason, as it may on a busy machine,
// the wait is repeated, at most for limit.
func (s *scenario) cause(w watcher, reason status.Reason) (got string) {
	s.Helper()
	eventually(s.ctx, limit, func() bool {
		got = w.wait(s.ctx, observation)
		return got == because(reason) || w.state() == nothing
	})
	return got
}

// because is the result of a wait that fails for this reason.
func because(reason status.Reason) string { return "the reason " + string(reason) }

// says waits until the state of w has the text, if w has states at all.
func (s *scenario) says(w watcher, text string) {
	eventually(s.ctx, limit, func() bool { return w.state() == nothing || strings.Contains(w.state(), text) })
}

// discovers reports whether the discovery of w, which is of all namespaces, shows its type in this version.
func discovers(w watcher, version string) bool {
	switch w := w.(type) {
	case *gvrkit:
		return slices.Contains(w.lease.Status().Resource.Versions, version)
	case *restartLoop:
		served, err := w.serves(w.gvr.GroupResource().WithVersion(version))
		return err == nil && served
	}
	return false
}

// informers is the number of informers of w.
func informers(w watcher) (n int) {
	switch w := w.(type) {
	case *gvrkit:
		return len(w.factory.Status())
	case *restartLoop:
		if w.informer() != nil {
			return 1
		}
	case restartLoops:
		for _, l := range w {
			n += informers(l)
		}
	}
	return n
}

// count is n with a noun.
func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// cached describes the cache of w.
func cached(w watcher) string {
	all, readable := w.objects()
	if !readable {
		return "the cache is dropped"
	}
	return "the cache has " + count(len(all), "object")
}

// gvrkit is a watcher with a lease.
type gvrkit struct {
	*testing.T
	factory *dynamicinformer.Factory
	lease   *dynamicinformer.Lease
	err     error // of Acquire
}

func watchByLease(s *scenario, gvr schema.GroupVersionResource, handler cache.ResourceEventHandler, namespaces ...string) watcher {
	f, err := dynamicinformer.NewForConfigAndClient(s.config, s.http)
	s.check(err)
	f.Start(s.ctx)
	w := &gvrkit{T: s.T, factory: f}
	opts := []dynamicinformer.LeaseOption{dynamicinformer.WithAllowAbsent()}
	if namespaces != nil {
		opts = append(opts, dynamicinformer.WithNamespaces(namespaces...))
	}
	if w.lease, w.err = f.Acquire(s.ctx, gvr, opts...); w.err == nil {
		_, err = w.lease.AddEventHandler(handler)
		s.check(err)
	}
	return w
}

func (w *gvrkit) wait(ctx context.Context, limit time.Duration) string {
	if _, is := errors.AsType[*discovery.RefError](w.err); is {
		return "a RefError of Acquire"
	}
	if w.err != nil {
		return w.err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := w.lease.WaitForSync(ctx); err != nil {
		return because(w.lease.Status().Reason)
	}
	return synced
}

func (w *gvrkit) state() string {
	now := w.lease.Status()
	text := string(now.State)
	if now.Reason != "" {
		text += " with the reason " + string(now.Reason)
	}
	if now.Resource.Terminating && now.State != status.StateNotServed {
		text += ", terminating"
	}
	for _, namespace := range now.Namespaces {
		if namespace.Reason != "" {
			text += fmt.Sprintf(", and of the namespace %s: %s", namespace.Name, namespace.Reason)
		}
	}
	return text
}

func (w *gvrkit) objects() ([]*unstructured.Unstructured, bool) {
	return unstructuredOf(w.lease.Informer().GetStore()), w.lease.Status().State != status.StateNotServed
}

func (w *gvrkit) informer() cache.SharedIndexInformer { return w.lease.Informer() }

func (w *gvrkit) retry() { w.lease.Retry() }

func (w *gvrkit) leave() { w.lease.Release() }

func (w *gvrkit) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), limit) //nolint:forbidigo // a cleanup, after the end of the test's context
	defer cancel()
	if err := w.factory.Shutdown(ctx); err != nil {
		w.Error(err)
	}
}

func unstructuredOf(store cache.Store) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, obj := range store.List() {
		all = append(all, obj.(*unstructured.Unstructured))
	}
	return all
}

// counts are the calls of a handler. Unchanged are updates with equal resourceVersions, and replaced those to another UID; updates has
// neither.
type counts struct{ adds, updates, unchanged, replaced, deletes int }

// log is a handler that counts its calls.
type log struct {
	mu    sync.Mutex
	total counts
	size  int64 // of the object in the last update
}

func (l *log) counts() counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// forget takes the last update out of the count, if it is to this size.
func (l *log) forget(size int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size != size {
		return false
	}
	l.total.updates--
	return true
}

func (l *log) String() string {
	text := l.changes()
	if c := l.counts(); c.unchanged > 0 {
		text += fmt.Sprintf(", %s without a change", count(c.unchanged, "update"))
	}
	return text
}

// roughly is String without the number of updates without a change, which depends on the number of lists.
func (l *log) roughly() string {
	text := l.changes()
	if l.counts().unchanged > 0 {
		text += ", and updates without a change"
	}
	return text
}

// changes is String without the updates without a change.
func (l *log) changes() string {
	c := l.counts()
	text := count(c.adds, "add") + ", " + count(c.updates, "update") + ", " + count(c.deletes, "delete")
	if c.replaced > 0 {
		text += fmt.Sprintf(", %s to another UID", count(c.replaced, "update"))
	}
	return text
}

func (l *log) OnAdd(any, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total.adds++
}

func (l *log) OnUpdate(oldObj, newObj any) {
	before, _ := meta.Accessor(oldObj)
	now, _ := meta.Accessor(newObj)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case before.GetUID() != now.GetUID():
		l.total.replaced++
	case before.GetResourceVersion() == now.GetResourceVersion():
		l.total.unchanged++
	default:
		l.total.updates++
		l.size, _, _ = unstructured.NestedInt64(newObj.(*unstructured.Unstructured).Object, "spec", "size")
	}
}

func (l *log) OnDelete(any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total.deletes++
}
