package controllerruntime

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/form"
)

func TestNewInformer_CreatesTheInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		c := makeCache(t, cluster, cache.Options{DefaultNamespaces: map[string]cache.Config{"ns": {}}})
		c.made = &maker{new: toolscache.NewSharedIndexInformer, clients: form.Clients{Own: cluster}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &world{T: t, Cluster: cluster, cache: c, ctx: ctx}
		before := w.informer(&Widget{}) // it runs from Start on
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		w.create(widgets, "ns", "a", 1)
		w.create(widgets, "other", "b", 1)
		if diff := cmp.Diff([]string{"a"}, w.names()); diff != "" {
			t.Error(diff)
		}
		structured, _ := listen(t, before)
		tree, _ := listen(t, w.informer(newUnstructured(widgetKind)))
		structured.take()
		tree.take()
		w.create(widgets, "ns", "c", 1)
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/c"}, structured.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"add *unstructured.Unstructured ns/c"}, tree.take()); diff != "" {
			t.Error(diff)
		}
		if err := c.RemoveInformer(ctx, &Widget{}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !before.IsStopped() || cluster.OpenWatches(widgets) != 1 {
			t.Errorf("after the removal, %d watches", cluster.OpenWatches(widgets))
		}
		cancel()
		err := <-ended
		synctest.Wait()
		if err != nil || cluster.OpenWatches(widgets) != 0 {
			t.Errorf("Start: %v, %d watches", err, cluster.OpenWatches(widgets))
		}
	})
}
