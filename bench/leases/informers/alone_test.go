package informers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestAlone_WaitsWithoutARequestWhenItsTypeHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Widget"})
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"},
		}}
		if _, err := cluster.Resource(widgets).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		set := newAlone(ctx, cluster)
		informer, err := set.Arm(ctx, widgets)
		if err != nil {
			t.Fatal(err)
		}
		objects := 0
		if err := informer.Handle(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { objects++ }, DeleteFunc: func(any) { objects-- },
		}); err != nil {
			t.Fatal(err)
		}
		if err := informer.Synced(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if objects != 1 {
			t.Errorf("%d objects", objects)
		}
		if err := cluster.Resource(widgets).Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cluster.Withdraw(widgets)
		synctest.Wait()
		requests := func() int { return len(cluster.Requests("list", widgets)) + len(cluster.Requests("watch", widgets)) }
		before := requests()
		<-time.After(time.Hour)
		if after := requests(); objects != 0 || after != before || before == 0 {
			t.Errorf("%d objects, %d requests after %d", objects, after, before)
		}
		cancel()
		if err := set.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
