package controllerruntime

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// isDone reports whether the channel of a checker is closed.
func isDone(done <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func TestNamespaces_AreOneInformer(t *testing.T) {
	opts := cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}}
	in(t, served{widgetType}, opts, nil, func(w *world) {
		w.create(widgets, "a", "one", 1)
		w.create(widgets, "other", "not", 1)
		i := w.informer(&Widget{})
		got, registration := listen(t, i)
		w.create(widgets, "b", "two", 1)
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget a/one", "add *controllerruntime.Widget b/two"}, got.take()); diff != "" {
			t.Error(diff)
		}
		if !i.HasSynced() || !registration.HasSynced() || !isDone(i.HasSyncedChecker().Done()) || !isDone(registration.HasSyncedChecker().Done()) {
			t.Error("the informer or its handler has not synced")
		}
		if name := i.HasSyncedChecker().Name(); !strings.Contains(name, "a: ") || !strings.Contains(name, ", b: ") {
			t.Errorf("the name is %q", name)
		}
		if diff := cmp.Diff([]string{"one", "two"}, w.names()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"two"}, w.names(client.InNamespace("b"))); diff != "" {
			t.Error(diff)
		}
		if n := len(w.names(client.Limit(1))); n != 1 {
			t.Errorf("a limit of one returns %d objects", n)
		}
		if err := w.cache.List(w.ctx, &WidgetList{}, client.InNamespace("other")); err == nil {
			t.Error("a namespace that is not watched can be read")
		}
		if err := i.RemoveEventHandler(registration); err != nil {
			t.Error(err)
		}
		w.create(widgets, "a", "three", 1)
		if events := got.take(); len(events) > 0 {
			t.Errorf("events of a removed handler: %v", events)
		}
		if err := w.cache.RemoveInformer(w.ctx, &Widget{}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !i.IsStopped() || w.OpenWatches(widgets) > 0 {
			t.Error("the informer has not stopped")
		}
	})
}

// A namespace that hangs delays the informer. No goroutine is left when the cache stops.
func TestNamespaces_OneThatHangs(t *testing.T) {
	opts := cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}}
	in(t, served{widgetType}, opts, nil, func(w *world) {
		w.Intercept(hanging("b"))
		i := w.informer(&Widget{}, cache.BlockUntilSynced(false))
		_, registration := listen(t, i)
		if i.HasSynced() || registration.HasSynced() || isDone(i.HasSyncedChecker().Done()) || isDone(registration.HasSyncedChecker().Done()) {
			t.Error("the informer or its handler has synced")
		}
	})
}

func TestNamespaces_IndexesAreOfAll(t *testing.T) {
	opts := cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, cache.AllNamespaces: {}}}
	in(t, served{widgetType}, opts, nil, func(w *world) {
		w.create(widgets, "a", "one", 1)
		w.create(widgets, "b", "two", 1)
		w.create(widgets, "b", "three", 2)
		if err := w.cache.IndexField(w.ctx, &Widget{}, "size", bySize); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"one", "two"}, w.names(client.MatchingFields{"size": "1"})); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"two"}, w.names(client.MatchingFields{"size": "1"}, client.InNamespace("b"))); diff != "" {
			t.Error(diff)
		}
	})
}

// A program may ask for a checker again and again.
func TestHasSyncedChecker_HasOneGoroutine(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces map[string]cache.Config
		options    []Option
	}{
		"namespaces":   {namespaces: map[string]cache.Config{"ns": {}, "slow": {}}},
		"allow absent": {options: []Option{WithAllowAbsent()}},
		"both":         {namespaces: map[string]cache.Config{"ns": {}, "slow": {}}, options: []Option{WithAllowAbsent()}},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, served{widgetType}, cache.Options{DefaultNamespaces: tc.namespaces}, tc.options, func(w *world) {
				w.Intercept(func(ctx context.Context, _ fakecluster.Request) error {
					<-ctx.Done()
					return nil
				})
				i := w.informer(&Widget{}, cache.BlockUntilSynced(false))
				i.HasSyncedChecker().Done()
				synctest.Wait()
				before := runtime.NumGoroutine()
				for range 100 {
					i.HasSyncedChecker().Done()
				}
				synctest.Wait()
				if more := runtime.NumGoroutine() - before; more >= 100 {
					t.Errorf("100 calls started %d goroutines", more)
				}
			})
		})
	}
}
