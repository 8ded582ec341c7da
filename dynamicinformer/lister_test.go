package dynamicinformer_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/lister"
)

// A reconciler may call ForResource for each read. It must not take the end of the informer for the end
// of its objects.
func TestFactory_ListerReadsAfterTheEndOfTheInformer(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(t *testing.T, f *dynamicinformer.Factory, cancel func())
	}{
		{"by its context", func(_ *testing.T, _ *dynamicinformer.Factory, cancel func()) { cancel() }},
		{"by Shutdown", func(t *testing.T, f *dynamicinformer.Factory, _ func()) { t.Helper(); shutdown(t, f) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				create(t, cluster, widgets, "ns", "a")
				f := newFactory(t, cluster)
				f.ForResource(widgets)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start(ctx, f)
				tc.end(t, f, cancel)
				if _, err := f.ForResource(widgets).Lister().ByNamespace("ns").Get("a"); err != nil {
					t.Errorf("at once: %v", err)
				}
				synctest.Wait()
				if _, err := f.ForResource(widgets).Lister().ByNamespace("ns").Get("a"); err != nil {
					t.Errorf("later: %v", err)
				}
			})
		})
	}
}

func TestFactory_ListerOfANewInformerReadsTheOldCacheUntilItHasSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "old")
		f := newFactory(t, cluster)
		view := f.DropIn()
		names := func() []string {
			t.Helper()
			found, err := view.ForResource(widgets).Lister().List(labels.Everything())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, obj := range found {
				names = append(names, obj.(*unstructured.Unstructured).GetName())
			}
			return names
		}
		for _, want := range []string{"old", "new"} {
			view.ForResource(widgets)
			stop := make(chan struct{})
			view.Start(stop)
			synctest.Wait()
			if diff := cmp.Diff([]string{want}, names()); diff != "" {
				t.Errorf("running (-want +got):\n%s", diff)
			}
			close(stop)
			for range 2 { // also if a new informer was returned and never started
				if diff := cmp.Diff([]string{want}, names()); diff != "" {
					t.Errorf("stopped (-want +got):\n%s", diff)
				}
			}
			if want == "old" {
				if err := cluster.Resource(widgets).Namespace("ns").Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				create(t, cluster, widgets, "ns", "new")
			}
		}
		view.Shutdown()
	})
}

// A program may keep the lister that it got before its second start.
func TestDropIn_AListerOfTheSecondStartReadsItsCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(cluster, 0, metav1.NamespaceAll, nil)
		run := func() func() {
			stop := make(chan struct{})
			factory.Start(stop)
			factory.WaitForCacheSync(stop)
			return func() { close(stop); synctest.Wait() }
		}
		factory.ForResource(widgets)
		run()()
		kept := factory.ForResource(widgets).Lister()
		inNamespace := kept.ByNamespace("ns")
		if objects, err := kept.List(labels.Everything()); len(objects) != 1 || err != nil {
			t.Errorf("before the second start: %d objects, %v", len(objects), err)
		}
		create(t, cluster, widgets, "ns", "b")
		stop := run()
		if objects, err := kept.List(labels.Everything()); len(objects) != 2 || err != nil {
			t.Errorf("after the second start: %d objects, %v", len(objects), err)
		}
		if objects, err := inNamespace.List(labels.Everything()); len(objects) != 2 || err != nil {
			t.Errorf("after the second start: %d objects in the namespace, %v", len(objects), err)
		}
		if _, err := kept.Get("ns/b"); err != nil {
			t.Error(err)
		}
		if _, err := inNamespace.Get("b"); err != nil {
			t.Error(err)
		}
		stop()
		factory.Shutdown()
	})
}

func TestLease_UnstructuredQueriesTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		create(t, cluster, widgets, "ns", "b")
		f := newFactory(t, cluster, dynamicinformer.WithIndexers(cache.Indexers{"name": func(obj any) ([]string, error) {
			return []string{obj.(*unstructured.Unstructured).GetName()}, nil
		}}))
		l := syncedLease(t, f)
		result, err := l.Unstructured().Query(lister.Query{Where: "metadata.name>a"})
		if err != nil || result.Total != 1 || result.Items[0].GetName() != "b" {
			t.Errorf("Query returns %+v, %v", result, err)
		}
		cached, _, _ := l.Informer().GetStore().GetByKey("ns/b")
		if len(result.Items) == 1 && result.Items[0] != cached {
			t.Error("Query returns a copy")
		}
		if found, err := l.Unstructured(lister.WithCopies()).ByIndex("name", "b"); err != nil || len(found) != 1 || found[0] == cached {
			t.Errorf("ByIndex with copies returns %v, %v", found, err)
		}
		if _, err := l.Unstructured().Get("ns/none"); err == nil || err.Error() != `widgets.example.com "ns/none" not found` {
			t.Errorf("Get: %v", err)
		}
		l.Release()
		typed, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets)
		if err != nil {
			t.Fatal(err)
		}
		if err := typed.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := typed.Unstructured().List(nil); err == nil || !strings.Contains(err.Error(), "want *unstructured.Unstructured") {
			t.Errorf("a lease on objects of a Go type: %v", err)
		}
		shutdown(t, f)
	})
}
