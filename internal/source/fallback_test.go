package source_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// fallenBack is an informer on all namespaces of which ns, which has n objects, is in the set of those that are allowed. Then its requests are
// forbidden, in all namespaces. Allow allows those in ns.
func fallenBack(t *testing.T, n int, modify func(*source.Config)) (w *testInformer, shard *testShard, allow func()) {
	t.Helper()
	w, shard = sharded(t, part(0, 1), n, func(cfg *source.Config) {
		cfg.Namespaces = source.NewNamespaces("ns").Allowed(true)
		modify(cfg)
	})
	create(t, w.cluster, "vanished", "x", "red")
	synctest.Wait()
	if got := len(w.keys()); got != n+1 {
		t.Fatalf("%d objects, want %d", got, n+1)
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
		w, _, allow := fallenBack(t, 4, func(cfg *source.Config) { cfg.Shard = nil })
		if got := len(w.keys()); got != 5 {
			t.Errorf("%d objects while all is forbidden, want 5", got)
		}
		if got := w.source.Namespaces(); len(got) != 1 || got[0].Name != "ns" || !got[0].Listed || !apierrors.IsForbidden(got[0].Failure.Err) {
			t.Errorf("namespaces = %+v", got)
		}
		if got, _, _ := w.source.Unlisted(""); len(got) != 0 {
			t.Errorf("unlisted = %+v", got)
		}
		allow()
		w.source.Retry()
		if got := w.keys(); len(got) != 4 {
			t.Errorf("the store has %v", got)
		}
	})
}

// The slots of another process leave at once.
func TestNamespaces_LostSlotsLeaveAfterAFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shard, _ := fallenBack(t, 4, func(*source.Config) {})
		shard.set(sharding.Slots{})
		synctest.Wait()
		if got := w.keys(); len(got) != 0 {
			t.Errorf("the store has %v", got)
		}
	})
}

// The cache has the objects of the list after a fall-back already: a memory budget does not refuse it.
func TestNamespaces_AFallBackIsNotRefused(t *testing.T) {
	limit := int64(1 << 40)
	for range 2 { // the first time shows the size of the cache
		synctest.Test(t, func(t *testing.T) {
			memory := budget.New(limit)
			w, _, allow := fallenBack(t, 200, func(cfg *source.Config) { cfg.Shard, cfg.Budget = nil, memory })
			limit = memory.Status().Caches * 3 / 2
			w.create("new")
			allow()
			w.source.Retry()
			time.Sleep(time.Minute)
			if got := w.keys(); !slices.Contains(got, "ns/new") || len(got) != 201 {
				t.Errorf("%d objects, want 201 with the new one; the budget is %+v", len(got), memory.Status())
			}
		})
	}
}

// hourly checks that widgets are listed as often in an hour as this number of namespaces that are tried again after five minutes.
func (w *testInformer) hourly(when string, namespaces int) {
	w.t.Helper()
	before, _ := w.requests()
	time.Sleep(time.Hour)
	after, _ := w.requests()
	if lists := after - before; lists < namespaces*10 || lists > namespaces*14 {
		w.t.Errorf("%s: %d lists in an hour of %d namespaces that are forbidden", when, lists, namespaces)
	}
}

// Forbidden namespaces are tried again after five minutes, also if the cache has their objects, and if there is no other one.
func TestNamespaces_ForbiddenOnesAreSeldomListedAfterAFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"ns"}
		for i := range 19 {
			names = append(names, inSet(i))
		}
		set := source.NewNamespaces(names...).Allowed(true)
		w, _, allow := fallenBack(t, 4, func(cfg *source.Config) { cfg.Shard, cfg.Namespaces = nil, set })
		w.hourly("all are forbidden", 20)
		w.source.Retry()
		time.Sleep(2 * time.Minute) // the back-off is over, and the pause of five minutes is not
		w.create("new")
		allow()
		set.Set(names[:19]...)
		synctest.Wait()
		if got := w.keys(); !slices.Contains(got, "ns/new") {
			t.Errorf("with another set the store has %v", got)
		}
		time.Sleep(time.Minute)
		w.hourly("one is allowed", 18)
	})
}

// A namespace that may be listed and not watched is listed instead.
func TestNamespaces_ForbiddenWatchesAreReplacedByLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) { cfg.Namespaces = source.NewNamespaces("ns").Allowed(false) }, "a")
		w.cluster.Intercept(failing("watch", errForbidden, 0))
		w.cluster.CloseWatches(widgets)
		time.Sleep(10 * time.Minute)
		w.create("b")
		time.Sleep(90 * time.Second)
		w.expect("after a list", "add b red")
	})
}

// The set of the allowed namespaces may change often while all are forbidden: then they are listed as other failing ones, every 30 s.
func TestNamespaces_ForbiddenOnesAreNotListedWithEachChangeOfTheSet(t *testing.T) {
	for _, every := range []time.Duration{5 * time.Second, 3 * time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				names := []string{"ns"}
				for i := range 19 {
					names = append(names, inSet(i))
				}
				set := source.NewNamespaces(names...).Allowed(true)
				w, _, _ := fallenBack(t, 4, func(cfg *source.Config) { cfg.Shard, cfg.Namespaces = nil, set })
				before, _ := w.requests()
				for i := range int(time.Hour / every) {
					set.Set(names[:19+i%2]...)
					time.Sleep(every)
				}
				if after, _ := w.requests(); after-before > 2400 {
					t.Errorf("%d lists in an hour", after-before)
				}
			})
		})
	}
}

// Permissions may take effect a second after the objects that grant them.
func TestNamespaces_OneForbiddenListOfACachedNamespaceIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) { cfg.Namespaces.Allowed(false) }, nil, "m", "n")
		time.Sleep(time.Minute)
		var lists atomic.Int64
		s.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			switch {
			case req.Namespace != "n":
			case req.Verb == "watch" && lists.Load() == 0:
				return apierrors.NewResourceExpired("too old")
			case req.Verb == "list" && req.Options.Limit != 1 && lists.Add(1) == 1:
				return errForbidden
			}
			return nil
		})
		s.cluster.CloseWatches(widgets)
		create(t, s.cluster, "n", "late", "red")
		time.Sleep(5 * time.Second)
		if got := s.keys(); !slices.Contains(got, "n/late") || lists.Load() != 2 {
			t.Errorf("the store has %v after %d lists", got, lists.Load())
		}
	})
}

func TestNamespaces_AllAreForbiddenForAMomentAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var allowed atomic.Bool
		s := newTestSet(t, func(cfg *source.Config) { cfg.Namespaces.Allowed(false) }, func(cluster *fakecluster.Cluster) {
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if req.Verb == "list" && !allowed.Load() {
					return errForbidden
				}
				return nil
			})
		}, "m", "n")
		time.Sleep(time.Second)
		allowed.Store(true)
		time.Sleep(5 * time.Second)
		if !s.HasSynced() {
			t.Error("not synced 5 s after the permission")
		}
	})
}

// The pauses of namespaces that are forbidden are not those of a type without namespaces.
func TestNamespaces_ForbiddenListOfAClusterScopedTypeIsRepeatedAsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := fallenBack(t, 4, func(cfg *source.Config) { cfg.Shard = nil })
		now, _ := w.available.Current()
		now.Generation++
		now.Namespaced = false
		w.available.Set(now)
		before, _ := w.requests()
		time.Sleep(time.Hour)
		if after, _ := w.requests(); after-before < 100 {
			t.Errorf("%d lists in an hour", after-before)
		}
	})
}

// A namespace that was created after a fall-back is not in the cache.
func TestNamespaces_NewOneIsNotListedAfterAFallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := source.NewNamespaces("ns").Allowed(true)
		w, _, allow := fallenBack(t, 4, func(cfg *source.Config) { cfg.Shard, cfg.Namespaces = nil, set })
		create(t, w.cluster, "young", "x", "red")
		set.Set("ns", "young")
		check := func(when string) {
			t.Helper()
			if got := w.source.Namespaces(); len(got) != 1 || got[0].Name != "ns" || !got[0].Listed {
				t.Errorf("%s: namespaces = %+v", when, got)
			}
			if got, _, _ := w.source.Unlisted(""); len(got) != 1 || got[0].Name != "young" || got[0].Listed {
				t.Errorf("%s: unlisted = %+v", when, got)
			}
		}
		time.Sleep(time.Hour)
		check("all are forbidden")
		allow()
		time.Sleep(time.Hour)
		check("one is allowed")
	})
}
