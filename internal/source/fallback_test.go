package source_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// fallenBack is an informer on all namespaces of which ns is in the set of those that are allowed. Then its requests are forbidden, in all
// namespaces. Allow allows those in ns.
func fallenBack(t *testing.T, modify func(*source.Config)) (w *testInformer, shard *testShard, allow func()) {
	t.Helper()
	w, shard = sharded(t, part(0, 1), 4, func(cfg *source.Config) {
		cfg.Namespaces = source.NewNamespaces("ns").Allowed(true)
		modify(cfg)
	})
	create(t, w.cluster, "vanished", "x", "red")
	synctest.Wait()
	if got := len(w.keys()); got != 5 {
		t.Fatalf("%d objects, want 5", got)
	}
	var allowed atomic.Bool
	w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if (req.Verb == "list" || req.Verb == "watch") && (req.Namespace != "ns" || !allowed.Load()) {
			return errForbidden
		}
		return nil
	})
	w.cluster.CloseWatches(widgets)
	if err := w.cluster.Resource(widgets).Namespace("vanished").Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Minute)
	return w, shard, func() { allowed.Store(true) }
}

func TestNamespaces_AllAreForbiddenAtAFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, allow := fallenBack(t, func(cfg *source.Config) { cfg.Shard = nil })
		if got := len(w.keys()); got != 5 {
			t.Errorf("%d objects while all is forbidden, want 5", got)
		}
		allow()
		time.Sleep(time.Minute)
		if got := w.keys(); len(got) != 4 {
			t.Errorf("the store has %v", got)
		}
	})
}

// The slots of another process leave at once.
func TestNamespaces_LostSlotsLeaveAfterAFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shard, _ := fallenBack(t, func(*source.Config) {})
		shard.set(sharding.Slots{})
		synctest.Wait()
		if got := w.keys(); len(got) != 0 {
			t.Errorf("the store has %v", got)
		}
	})
}
