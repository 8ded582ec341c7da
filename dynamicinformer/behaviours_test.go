package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// expect compares the events of a recorder.
func (r *trial) expect(events *recorder, want ...string) {
	r.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, events.take()); diff != "" {
		r.errorf("events (-want +got):\n%s", diff)
	}
}

func (r *trial) requests(verb string) int { return len(r.cluster.Requests(verb, widgets)) }

func (r *trial) create(namespace, name string) { create(r.t, r.cluster, widgets, namespace, name) }

func (r *trial) widgets() dynamic.ResourceInterface {
	return r.cluster.Resource(widgets).Namespace("ns")
}

// noWatchList rejects watch-list requests, as servers before 1.27 do, so that the reflector
// lists.
func noWatchList(_ context.Context, req fakecluster.Request) error {
	if req.Options.SendInitialEvents != nil {
		return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil)
	}
	return nil
}

// cacheMovesOn checks that handlers get changes within two minutes for two hours, though each
// watch is refused. The informer sends some lists a minute, and no more than client-go.
func cacheMovesOn(refusal error) func(r *trial) {
	return func(r *trial) {
		r.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "watch" {
				return refusal
			}
			return nil
		})
		factory := r.plain()
		events := listen(r.t, factory.ForResource(widgets).Informer())
		r.run(factory)
		for i := range 24 {
			name := fmt.Sprint("a", i)
			r.create("ns", name)
			time.Sleep(2 * time.Minute)
			got := events.take()
			if err := r.widgets().Delete(r.t.Context(), name, metav1.DeleteOptions{}); err != nil {
				r.errorf("delete: %v", err)
			}
			time.Sleep(3 * time.Minute)
			got = slices.DeleteFunc(append(got, events.take()...), func(event string) bool {
				return event == "update ns/"+name // from client-go's lists
			})
			if diff := cmp.Diff([]string{"add ns/" + name, "delete ns/" + name}, got); diff != "" {
				r.errorf("events (-want +got):\n%s", diff)
			}
		}
		if lists := r.requests("list"); lists < 120 || lists > 450 {
			r.errorf("%d lists in 2 h", lists)
		}
		r.t.Logf("%s: %d lists, %d watches in 2 h", r.name, r.requests("list"), r.requests("watch"))
	}
}

// conformance has the behaviours that both packages have.
var conformance = []behaviour{
	{"adds updates and deletes are delivered in order", func(r *trial) {
		r.create("ns", "before")
		factory := r.plain()
		events := listen(r.t, factory.ForResource(widgets).Informer())
		r.run(factory)
		r.expect(events, "add ns/before")
		obj := create(r.t, r.cluster, widgets, "ns", "a")
		if _, err := r.widgets().Update(r.t.Context(), obj, metav1.UpdateOptions{}); err != nil {
			r.errorf("update: %v", err)
		}
		if err := r.widgets().Delete(r.t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			r.errorf("delete: %v", err)
		}
		r.expect(events, "add ns/a", "update ns/a", "delete ns/a")
	}},
	{"tweakListOptions applies to the list", func(r *trial) { listsOnlyA(r, nil) }},
	{"tweakListOptions applies to the watch", func(r *trial) { watchesOnlyA(r, nil) }},
	{"tweakListOptions applies to the list without watch-list", func(r *trial) { listsOnlyA(r, noWatchList) }},
	{"tweakListOptions applies to the watch without watch-list", func(r *trial) { watchesOnlyA(r, noWatchList) }},
	{"the namespace applies to list and watch", func(r *trial) {
		r.create("ns", "listed")
		r.create("other", "listed")
		factory := r.newFactory(r.cluster, 0, "ns", nil)
		events := listen(r.t, factory.ForResource(widgets).Informer())
		r.run(factory)
		r.create("ns", "watched")
		r.create("other", "watched")
		r.expect(events, "add ns/listed", "add ns/watched")
	}},
	{"ForResource shares by GVR", func(r *trial) {
		factory := r.plain()
		if factory.ForResource(widgets).Informer() != factory.ForResource(widgets).Informer() {
			r.errorf("one GVR, two informers")
		}
		if factory.ForResource(widgets).Informer() == factory.ForResource(blocks).Informer() {
			r.errorf("two GVRs, one informer")
		}
		r.run(factory)
		if got := r.cluster.OpenWatches(widgets); got != 1 {
			r.errorf("open watches: %d", got)
		}
	}},
	{"ForResource sends no request and starts no informer", func(r *trial) {
		r.plain().ForResource(widgets)
		synctest.Wait()
		if r.requests("list")+r.requests("watch") > 0 {
			r.errorf("requests before Start")
		}
	}},
	{"a watch error handler gets the reflector's error", func(r *trial) {
		answer(r.cluster, errors.New("boom"))
		factory := r.plain()
		var texts []string
		informer := factory.ForResource(widgets).Informer()
		if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			if text := err.Error(); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}); err != nil {
			r.errorf("%v", err)
		}
		r.run(factory)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"failed to list example.com/v1, Resource=widgets: boom"}, texts); diff != "" {
			r.errorf("(-want +got):\n%s", diff)
		}
	}},
	{"Start twice watches once", func(r *trial) {
		factory := r.plain()
		factory.ForResource(widgets)
		r.run(factory)
		r.run(factory)
		if got := r.requests("watch"); got != 1 {
			r.errorf("watches: %d", got)
		}
	}},
	{"Start runs informers that were requested since the last Start", func(r *trial) {
		factory := r.plain()
		factory.ForResource(widgets)
		r.run(factory)
		factory.ForResource(blocks)
		synctest.Wait()
		if got := r.cluster.OpenWatches(blocks); got != 0 {
			r.errorf("it ran by itself")
		}
		r.run(factory)
		if got := r.cluster.OpenWatches(blocks); got != 1 {
			r.errorf("open watches: %d", got)
		}
	}},
	{"WaitForCacheSync waits for started informers", func(r *trial) {
		factory := r.plain()
		factory.ForResource(widgets)
		r.run(factory)
		factory.ForResource(blocks)
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
		defer cancel()
		got := factory.WaitForCacheSync(ctx.Done())
		if diff := cmp.Diff(map[schema.GroupVersionResource]bool{widgets: true}, got); diff != "" {
			r.errorf("(-want +got):\n%s", diff)
		}
	}},
	{"WaitForCacheSync returns which informers have not synced", func(r *trial) {
		answer(r.cluster, apierrors.NewServiceUnavailable("down"))
		factory := r.plain()
		factory.ForResource(widgets)
		factory.ForResource(blocks)
		r.run(factory)
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
		defer cancel()
		got := factory.WaitForCacheSync(ctx.Done())
		if diff := cmp.Diff(map[schema.GroupVersionResource]bool{widgets: false, blocks: true}, got); diff != "" {
			r.errorf("(-want +got):\n%s", diff)
		}
	}},
	{"WaitForCacheSync returns true for a synced cache after its channel is closed", func(r *trial) {
		factory := r.plain()
		factory.ForResource(widgets)
		r.run(factory)
		if !r.synced(factory, 0, widgets) {
			r.errorf("false")
		}
	}},
	{"Shutdown waits for the stop channel and does not end informers", func(r *trial) {
		factory := r.plain()
		factory.ForResource(widgets)
		stop, down := make(chan struct{}), make(chan struct{})
		factory.Start(stop)
		for range 2 { // also concurrently
			go func() { factory.Shutdown(); down <- struct{}{} }()
		}
		synctest.Wait()
		if got := r.cluster.OpenWatches(widgets); got != 1 {
			r.errorf("open watches: %d", got)
		}
		select {
		case <-down:
			r.errorf("Shutdown did not wait")
			close(stop)
			<-down
		default:
			close(stop)
			<-down
			<-down
		}
		synctest.Wait() // client-go's Shutdown may return while the watch is being closed
		if got := r.cluster.OpenWatches(widgets); got != 0 {
			r.errorf("open watches afterwards: %d", got)
		}
	}},
	{"Start after Shutdown runs no informer", func(r *trial) {
		factory := r.plain()
		factory.ForResource(widgets)
		factory.Shutdown()
		factory.Shutdown()
		r.run(factory)
		if got := r.requests("watch"); got != 0 {
			r.errorf("watches: %d", got)
		}
	}},
	{"the default resync period is used", func(r *trial) {
		r.create("ns", "a")
		factory := r.newFactory(r.cluster, time.Minute, metav1.NamespaceAll, nil)
		events := listen(r.t, factory.ForResource(widgets).Informer())
		r.run(factory)
		time.Sleep(2 * time.Minute)
		r.expect(events, "add ns/a", "update ns/a", "update ns/a")
	}},
	{"a handler's resync period replaces the default", func(r *trial) {
		r.create("ns", "a")
		factory := r.newFactory(r.cluster, time.Minute, metav1.NamespaceAll, nil)
		events := &recorder{}
		if _, err := factory.ForResource(widgets).Informer().AddEventHandlerWithResyncPeriod(events, 5*time.Minute); err != nil {
			r.errorf("AddEventHandlerWithResyncPeriod: %v", err)
		}
		r.run(factory)
		time.Sleep(4 * time.Minute)
		r.expect(events, "add ns/a")
		time.Sleep(2 * time.Minute)
		r.expect(events, "update ns/a")
	}},
	{"a handler's resync period may be shorter than the default", func(r *trial) {
		r.create("ns", "a")
		factory := r.newFactory(r.cluster, 5*time.Minute, metav1.NamespaceAll, nil)
		events := &recorder{}
		if _, err := factory.ForResource(widgets).Informer().AddEventHandlerWithResyncPeriod(events, time.Minute); err != nil {
			r.errorf("AddEventHandlerWithResyncPeriod: %v", err)
		}
		r.run(factory)
		time.Sleep(150 * time.Second)
		r.expect(events, "add ns/a", "update ns/a", "update ns/a")
	}},
	{"the resync period of a handler that is added later is at least the default", func(r *trial) {
		r.create("ns", "a")
		factory := r.newFactory(r.cluster, time.Minute, metav1.NamespaceAll, nil)
		informer := factory.ForResource(widgets).Informer()
		r.run(factory)
		time.Sleep(time.Second)
		events := &recorder{}
		if _, err := informer.AddEventHandlerWithResyncPeriod(events, 10*time.Second); err != nil {
			r.errorf("AddEventHandlerWithResyncPeriod: %v", err)
		}
		time.Sleep(50 * time.Second)
		r.expect(events, "add ns/a")
	}},
	{"an update without another version is an event", func(r *trial) {
		// Objects of client-go's fake client have no version.
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "ns", "name": "a"},
		}}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgets: "WidgetList"}, obj)
		factory := r.newFactory(client, 0, metav1.NamespaceAll, nil)
		events := listen(r.t, factory.ForResource(widgets).Informer())
		r.run(factory)
		for range 3 {
			time.Sleep(40 * time.Second)
			if _, err := client.Resource(widgets).Namespace("ns").Update(r.t.Context(), obj, metav1.UpdateOptions{}); err != nil {
				r.t.Error(err)
			}
		}
		r.expect(events, "add ns/a", "update ns/a", "update ns/a", "update ns/a")
	}},
	{"the generic lister reads the cache", func(r *trial) {
		r.create("ns", "a")
		r.create("other", "b")
		factory := r.plain()
		lister := factory.ForResource(widgets).Lister()
		r.run(factory)
		all, err := lister.List(labels.Everything())
		if err != nil || len(all) != 2 {
			r.errorf("List: %v, %v", all, err)
		}
		in, err := lister.ByNamespace("ns").List(labels.Everything())
		if err != nil || len(in) != 1 {
			r.errorf("ByNamespace.List: %v, %v", in, err)
		}
		obj, err := lister.ByNamespace("ns").Get("a")
		if err != nil || obj.(*unstructured.Unstructured).GetName() != "a" {
			r.errorf("ByNamespace.Get: %v, %v", obj, err)
		}
		if obj, err := lister.Get("other/b"); err != nil || obj.(*unstructured.Unstructured).GetName() != "b" {
			r.errorf("Get: %v, %v", obj, err)
		}
		_, err = lister.ByNamespace("ns").Get("b")
		if diff := cmp.Diff(error(apierrors.NewNotFound(widgets.GroupResource(), "b")), err); diff != "" {
			r.errorf("the error of Get (-want +got):\n%s", diff)
		}
	}},
	{"a factory's caches are indexed by namespace", func(r *trial) {
		if _, ok := r.plain().ForResource(widgets).Informer().GetIndexer().GetIndexers()[cache.NamespaceIndex]; !ok {
			r.errorf("they are not")
		}
	}},
	{"a single informer has only the indexers of its caller", func(r *trial) {
		byName := func(any) ([]string, error) { return nil, nil }
		with := r.newInformer(r.cluster, widgets, "", 0, cache.Indexers{"name": byName}, nil).Informer().GetIndexer().GetIndexers()
		without := r.newInformer(r.cluster, widgets, "", 0, nil, nil).Informer().GetIndexer().GetIndexers()
		if len(with) != 1 || with["name"] == nil || len(without) != 0 {
			r.errorf("with: %d, without: %d", len(with), len(without))
		}
	}},
	{"a single informer uses namespace and tweak", func(r *trial) {
		r.create("ns", "a")
		r.create("ns", "b")
		r.create("other", "a")
		single := r.newInformer(r.cluster, widgets, "ns", 0, nil, func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=a" })
		events := listen(r.t, single.Informer())
		go single.Informer().Run(r.stop)
		r.expect(events, "add ns/a")
	}},
	{"watch-list is used with a client that supports it", func(r *trial) {
		factory := r.plain()
		factory.ForResource(widgets)
		r.run(factory)
		if r.requests("list") != 0 || r.requests("watch") != 1 {
			r.errorf("%d lists, %d watches", r.requests("list"), r.requests("watch"))
		}
	}},
	{"watch-list is not used with a client that does not support it", func(r *trial) {
		factory := r.newFactory(withoutWatchList{r.cluster}, 0, metav1.NamespaceAll, nil)
		factory.ForResource(widgets)
		r.run(factory)
		if r.requests("list") != 1 || r.requests("watch") != 1 {
			r.errorf("%d lists, %d watches", r.requests("list"), r.requests("watch"))
		}
	}},
	{"a watch that is closed is resumed without a list of the objects", func(r *trial) {
		factory := r.plain()
		events := listen(r.t, factory.ForResource(widgets).Informer())
		r.run(factory)
		r.create("ns", "a")
		synctest.Wait()
		r.cluster.CloseWatches(widgets)
		r.create("ns", "b")
		time.Sleep(time.Minute)
		r.expect(events, "add ns/a", "add ns/b")
		for _, req := range r.cluster.Requests("list", widgets) {
			if req.Options.Limit != 1 { // otherwise it compares versions
				r.errorf("a list with %v", req.Options)
			}
		}
	}},
	{"after an expired watch, handlers get missed changes", func(r *trial) {
		r.create("ns", "stays")
		r.create("ns", "goes")
		factory := r.plain()
		informer := factory.ForResource(widgets).Informer()
		events := listen(r.t, informer)
		r.run(factory)
		events.take()
		r.cluster.CloseWatches(widgets)
		if err := r.widgets().Delete(r.t.Context(), "goes", metav1.DeleteOptions{}); err != nil {
			r.errorf("delete: %v", err)
		}
		r.create("ns", "comes")
		r.cluster.Expire(widgets)
		time.Sleep(time.Minute)
		counts := map[string]int{}
		for _, event := range events.take() {
			if event != "update ns/stays" { // a relist may send it again
				counts[event]++
			}
		}
		if diff := cmp.Diff(map[string]int{"add ns/comes": 1, "delete ns/goes": 1}, counts); diff != "" {
			r.errorf("events (-want +got):\n%s", diff)
		}
	}},
	{"a handler that is added later gets an add for each object", func(r *trial) {
		r.create("ns", "a")
		factory := r.plain()
		informer := factory.ForResource(widgets).Informer()
		r.run(factory)
		r.expect(listen(r.t, informer), "add ns/a")
	}},
	{"a forbidden request is retried", func(r *trial) {
		r.create("ns", "a")
		answer(r.cluster, apierrors.NewForbidden(widgets.GroupResource(), "", nil))
		factory := r.plain()
		events := listen(r.t, factory.ForResource(widgets).Informer())
		r.run(factory)
		time.Sleep(10 * time.Minute)
		r.cluster.Intercept(nil)
		time.Sleep(2 * time.Minute)
		r.expect(events, "add ns/a")
	}},
	{"lists replace a forbidden watch", cacheMovesOn(apierrors.NewForbidden(widgets.GroupResource(), "", nil))},
	{"lists replace a watch that is not supported", cacheMovesOn(apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch"))},
	{"lists replace a watch that gets a server error", cacheMovesOn(apierrors.NewInternalError(errors.New("no")))},
	{"a transform may write to each object, also to those that are deleted", func(r *trial) {
		factory := r.plain()
		informer := factory.ForResource(widgets).Informer()
		if err := informer.SetTransform(func(obj any) (any, error) {
			obj.(*unstructured.Unstructured).SetManagedFields(nil)
			return obj, nil
		}); err != nil {
			r.errorf("SetTransform: %v", err)
		}
		events := listen(r.t, informer)
		r.run(factory)
		synctest.Wait()
		const storm = 500
		for i := range storm {
			r.create("ns", fmt.Sprint("a", i))
		}
		for i := range storm {
			if err := r.widgets().Delete(r.t.Context(), fmt.Sprint("a", i), metav1.DeleteOptions{}); err != nil {
				r.errorf("delete: %v", err)
			}
		}
		synctest.Wait()
		if got := len(events.take()); got != 2*storm {
			r.errorf("%d events, want %d", got, 2*storm)
		}
	}},
	{"the informer's own transform and watch error handler are used", func(r *trial) {
		factory := r.plain()
		informer := factory.ForResource(widgets).Informer()
		failures := 0
		if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) { failures++ }); err != nil {
			r.errorf("SetWatchErrorHandler: %v", err)
		}
		if err := informer.SetTransform(func(obj any) (any, error) {
			obj.(*unstructured.Unstructured).SetName("transformed")
			return obj, nil
		}); err != nil {
			r.errorf("SetTransform: %v", err)
		}
		r.create("ns", "a")
		answer(r.cluster, apierrors.NewForbidden(widgets.GroupResource(), "", nil))
		r.run(factory)
		r.cluster.Intercept(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if keys := informer.GetStore().ListKeys(); failures == 0 || len(keys) != 1 || keys[0] != "ns/transformed" {
			r.errorf("%d failures seen, keys %q", failures, keys)
		}
		if err := informer.SetTransform(nil); err == nil {
			r.errorf("SetTransform of a running informer: no error")
		}
	}},
	{"a registration has the handler's name, and its end can be waited for", func(r *trial) {
		r.create("ns", "a")
		factory := r.plain()
		informer := factory.ForResource(widgets).Informer()
		r.run(factory)
		ended := false
		slow := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { time.Sleep(time.Minute); ended = true }}
		for want, handler := range map[string]cache.ResourceEventHandler{
			"github.com/gvrkit/gvrkit/dynamicinformer_test.recorder":  &recorder{},
			"github.com/gvrkit/gvrkit/dynamicinformer_test.init.func": slow,
		} {
			registration, err := informer.AddEventHandler(handler)
			if err != nil {
				r.errorf("AddEventHandler: %v", err)
				continue
			}
			got := registration.HasSyncedChecker().Name()
			if want = informer.HasSyncedChecker().Name() + " + event handler " + want; !strings.HasPrefix(got, want) {
				r.errorf("%q, want %q", got, want)
			}
			synctest.Wait()
			if err := cache.ShutDownEventHandler(informer, registration); err != nil {
				r.errorf("ShutDownEventHandler: %v", err)
			}
		}
		if !ended {
			r.errorf("the end of a handler's last call was not waited for")
		}
	}},
	{"a stopped informer accepts no handlers", func(r *trial) {
		factory := r.plain()
		informer := factory.ForResource(widgets).Informer()
		stop := make(chan struct{})
		factory.Start(stop)
		synctest.Wait()
		close(stop)
		factory.Shutdown()
		if _, err := informer.AddEventHandler(&recorder{}); err == nil || !informer.IsStopped() || strings.Contains(err.Error(), "0x") {
			r.errorf("AddEventHandler: %v, IsStopped: %v", err, informer.IsStopped())
		}
	}},
	{"an informer can be run without its factory", func(r *trial) {
		r.create("ns", "a")
		informer := r.plain().ForResource(widgets).Informer()
		events := listen(r.t, informer)
		go informer.Run(r.stop)
		r.expect(events, "add ns/a")
	}},
}

// withoutWatchList is a client with the marker that it does not support watch-list, like
// client-go's fakes.
type withoutWatchList struct{ *fakecluster.Cluster }

func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// onlyA is a factory whose requests select the objects called a.
func onlyA(r *trial, intercept fakecluster.Interceptor) upstream.DynamicSharedInformerFactory {
	r.cluster.Intercept(intercept)
	return r.newFactory(r.cluster, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=a" })
}

func listsOnlyA(r *trial, intercept fakecluster.Interceptor) {
	r.create("ns", "a")
	r.create("ns", "b")
	factory := onlyA(r, intercept)
	events := listen(r.t, factory.ForResource(widgets).Informer())
	r.run(factory)
	r.expect(events, "add ns/a")
}

func watchesOnlyA(r *trial, intercept fakecluster.Interceptor) {
	factory := onlyA(r, intercept)
	events := listen(r.t, factory.ForResource(widgets).Informer())
	r.run(factory)
	r.create("ns", "a")
	r.create("ns", "b")
	r.expect(events, "add ns/a")
}
