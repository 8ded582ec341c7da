package dynamicinformer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
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
