package dynamicinformer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

func TestFactory_DeliversAddUpdateDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "before")
		f := newFactory(t, cluster)
		events := listen(t, f.ForResource(widgets).Informer())
		start(ctx, f)
		if diff := cmp.Diff([]string{"add ns/before"}, events.take()); diff != "" {
			t.Errorf("initial events (-want +got):\n%s", diff)
		}

		obj := create(t, cluster, widgets, "ns", "a")
		client := cluster.Resource(widgets).Namespace("ns")
		if _, err := client.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a", "update ns/a", "delete ns/a"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

func TestFactory_StartTwiceWatchesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		start(ctx, f)
		start(ctx, f)
		if got := len(cluster.Requests("watch", widgets)); got != 1 {
			t.Errorf("watches = %d, want 1", got)
		}
		shutdown(t, f)
	})
}

func TestFactory_ForResourceShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster)
		if a, b := f.ForResource(widgets), f.ForResource(widgets); a.Informer() != b.Informer() {
			t.Error("two calls with one GVR returned two informers")
		}
		if a, b := f.ForResource(widgets), f.ForResource(blocks); a.Informer() == b.Informer() {
			t.Error("two GVRs have the same informer")
		}
		start(ctx, f)
		if got := cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("open watches = %d, want 1", got)
		}
		shutdown(t, f)
	})
}

func TestFactory_ForResourceSendsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets)
		synctest.Wait()
		for _, verb := range []string{"list", "watch", fakecluster.VerbDiscover} {
			for _, gvr := range []schema.GroupVersionResource{widgets, {}, widgets.GroupVersion().WithResource("")} {
				if got := cluster.Requests(verb, gvr); len(got) > 0 {
					t.Errorf("before Start: %v", got)
				}
			}
		}
	})
}

func TestFactory_RunsInformersThatAreRequestedAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		start(ctx, f)
		f.ForResource(widgets)
		if err := f.WaitForSync(ctx, dynamicinformer.WithResources(widgets)); err != nil {
			t.Errorf("WaitForSync: %v", err)
		}
		shutdown(t, f)
	})
}

func TestFactory_EndOfStartContextEndsAllInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		life, end := context.WithCancel(ctx)
		start(life, f)
		end()
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
		view := f.DropIn()
		view.ForResource(blocks)
		view.Start(ctx.Done())
		start(ctx, f)
		if got := len(cluster.Requests("watch", blocks)); got != 0 {
			t.Errorf("an informer was started after the end of the context")
		}
		if err := f.WaitForSync(ctx, dynamicinformer.WithResources(blocks)); reasonOf(t, err) != status.ReasonStopped {
			t.Errorf("WaitForSync: %v", err)
		}
	})
}

func TestFactory_StoppedInformerIsNotReturnedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster)
		view := f.DropIn()
		first := view.ForResource(widgets).Informer()
		stop := make(chan struct{})
		view.Start(stop)
		synctest.Wait()
		close(stop)
		// No wait: the informer may still be running.
		second := view.ForResource(widgets).Informer()
		if first == second {
			t.Fatal("ForResource returned a stopped informer")
		}
		events := listen(t, second)
		view.Start(ctx.Done())
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a"}, events.take()); diff != "" {
			t.Errorf("events of the new informer (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

func TestFactory_HasItsClientAndResolver(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	if f := newFactory(t, cluster); f.Client() != dynamic.Interface(cluster) || f.Resolver() != nil {
		t.Errorf("New: client %v, resolver %v", f.Client(), f.Resolver())
	}
	cfg := &rest.Config{Host: "http://127.0.0.1:1"}
	f, err := dynamicinformer.NewForConfig(cfg)
	if err != nil || f.Client() == nil || f.Resolver() == nil {
		t.Errorf("NewForConfig: %v, client %v, resolver %v", err, f.Client(), f.Resolver())
	}
	resolver := f.Resolver()
	f, err = dynamicinformer.NewForConfig(cfg, dynamicinformer.WithDiscovery(resolver))
	if err != nil || f.Resolver() != resolver {
		t.Errorf("WithDiscovery: %v, resolver %v", err, f.Resolver())
	}
}

func TestDropIn_ResyncIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := dynamicinformer.NewDynamicSharedInformerFactory(cluster, 5*time.Minute)
		events := listen(t, f.ForResource(widgets).Informer())
		ctx, cancel := context.WithCancel(t.Context())
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		synctest.Wait()
		events.take()

		time.Sleep(5*time.Minute - time.Nanosecond)
		synctest.Wait()
		if got := events.take(); got != nil {
			t.Errorf("before the period: %q", got)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if diff := cmp.Diff([]string{"update ns/a"}, events.take()); diff != "" {
			t.Errorf("resync (-want +got):\n%s", diff)
		}
		cancel()
		f.Shutdown()
	})
}

func TestFactory_ResyncHasJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		create(t, cluster, blocks, "", "b")
		f := newFactory(t, cluster, dynamicinformer.WithResync(10*time.Minute))
		often := listen(t, f.ForResource(widgets).Informer())
		never := listen(t, acquire(t, f, blocks, dynamicinformer.WithResync(-1)).Informer())
		start(t.Context(), f)
		often.take()
		never.take()

		time.Sleep(9*time.Minute - time.Nanosecond)
		synctest.Wait()
		if got := often.take(); got != nil {
			t.Errorf("before the period: %q", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		early := often.take()
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if got := often.take(); got != nil {
			t.Errorf("exactly after the period: %q", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"update ns/a"}, append(early, often.take()...)); diff != "" {
			t.Errorf("resync (-want +got):\n%s", diff)
		}
		if got := never.take(); got != nil {
			t.Errorf("resync without a period: %q", got)
		}
		shutdown(t, f)
	})
}

func TestFactory_SelectorAndNamespaceApplyToListAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		red := map[string]string{"color": "red"}
		add := func(namespace, name string, labels map[string]string) {
			t.Helper()
			_, err := cluster.Resource(widgets).Namespace(namespace).Create(ctx, newObject(name, labels), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		add("ns", "listed", red)
		add("ns", "listed-blue", nil)
		add("other", "listed-elsewhere", red)
		f := newFactory(t, cluster,
			dynamicinformer.WithNamespace("ns"),
			dynamicinformer.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "color=red" }))
		events := listen(t, f.ForResource(widgets).Informer())
		start(ctx, f)
		add("ns", "watched", red)
		add("ns", "watched-blue", nil)
		add("other", "watched-elsewhere", red)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/listed", "add ns/watched"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

func TestFactory_TransformAndIndexers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		byName := func(obj any) ([]string, error) { return []string{obj.(*unstructured.Unstructured).GetName()}, nil }
		f := newFactory(t, cluster,
			dynamicinformer.WithTransform(func(obj any) (any, error) {
				obj.(*unstructured.Unstructured).SetAnnotations(map[string]string{"seen": "true"})
				return obj, nil
			}),
			dynamicinformer.WithIndexers(cache.Indexers{"name": byName}))
		generic := f.ForResource(widgets)
		start(ctx, f)
		found, err := generic.Informer().GetIndexer().ByIndex("name", "a")
		if err != nil || len(found) != 1 {
			t.Fatalf("ByIndex = %v, %v", found, err)
		}
		if got := found[0].(*unstructured.Unstructured).GetAnnotations()["seen"]; got != "true" {
			t.Errorf("the transform was not applied")
		}
		if _, ok := generic.Informer().GetIndexer().GetIndexers()[cache.NamespaceIndex]; !ok {
			t.Error("there is no index by namespace")
		}
		listed, err := generic.Lister().ByNamespace("ns").List(labels.Everything())
		if err != nil || len(listed) != 1 {
			t.Errorf("list by namespace = %v, %v", listed, err)
		}
		shutdown(t, f)
	})
}

// A handler may call the factory.
func TestFactory_HandlerMayCallTheFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster)
		var synced error
		_, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) {
				f.ForResource(blocks)
				synced = f.WaitForSync(ctx, dynamicinformer.WithResources(blocks))
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		start(ctx, f)
		if synced != nil {
			t.Errorf("WaitForSync within a handler: %v", synced)
		}
		shutdown(t, f)
	})
}

func TestNewForConfig_HasDiscoveryByDefault(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []dynamicinformer.Option
		want int64
	}{
		{"by default", nil, 1},
		{"told not to", []dynamicinformer.Option{dynamicinformer.WithDiscovery(nil)}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked atomic.Int64
			serve := oneBlock()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/apis/crd.projectcalico.org/v1" {
					asked.Add(1)
				}
				serve.ServeHTTP(w, r)
			}))
			defer server.Close()
			f, err := dynamicinformer.NewForConfig(&rest.Config{Host: server.URL}, tc.opts...)
			if err != nil {
				t.Fatal(err)
			}
			f.ForResource(blocks)
			f.Start(t.Context())
			if err := f.WaitForSync(t.Context()); err != nil {
				t.Error(err)
			}
			shutdown(t, f)
			if got := asked.Load(); got != tc.want {
				t.Errorf("%d discovery requests, want %d", got, tc.want)
			}
		})
	}
}

func TestNew_RejectsNil(t *testing.T) {
	if _, err := dynamicinformer.New(nil); err == nil {
		t.Error("New(nil) has no error")
	}
	if _, err := dynamicinformer.NewForConfig(nil); err == nil {
		t.Error("NewForConfig(nil) has no error")
	}
	if _, err := dynamicinformer.New(fakecluster.New(), nil); err != nil {
		t.Errorf("New with a nil option: %v", err)
	}
}
