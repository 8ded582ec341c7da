package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// relist makes the informers on widgets list again: their watches end, and their version has expired.
func relist(t *testing.T, cluster *fakecluster.Cluster, i int) {
	t.Helper()
	create(t, cluster, blocks, "", fmt.Sprintf("later-%d", i)) // a later version
	cluster.Expire(widgets)
	cluster.CloseWatches(widgets)
	time.Sleep(time.Minute)
	synctest.Wait()
}

// The transform fails for an object in a relist. The object exists, so it is not deleted.
func TestRejected_ARelistDoesNotDeleteAnObjectThatExists(t *testing.T) {
	for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType, blockType)
				create(t, cluster, widgets, "ns", "a")
				f := newFactory(t, cluster, dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithTransform(rejectBad))
				f.Start(t.Context())
				l := acquire(t, f, widgets)
				events := listen(t, l.Informer())
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				relabel(t, cluster, "a", "error")
				time.Sleep(time.Minute)
				events.take()
				lists := len(cluster.Requests("list", widgets))
				relist(t, cluster, 1)
				if len(cluster.Requests("list", widgets)) == lists {
					t.Fatal("not listed again")
				}
				if got := events.take(); len(got) > 0 {
					t.Errorf("events for an object that the server has: %v", got)
				}
				shutdown(t, f)
			})
		})
	}
}

// Another list of the same bad objects does not change Since.
func TestRejected_SinceIsTheTimeOfTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		relabel(t, cluster, "a", "error")
		f := newFactory(t, cluster, dynamicinformer.WithTransform(rejectBad))
		l := syncedLease(t, f)
		since := l.Status().Since
		time.Sleep(time.Hour)
		relist(t, cluster, 1)
		if got := l.Status(); !got.Since.Equal(since) {
			t.Errorf("since %v after another list (%s), want %v", got.Since.Sub(since), got.Reason, since)
		}
		shutdown(t, f)
	})
}

// If there are more bad objects than recorded names, each is counted once while it is bad.
func TestRejected_AnObjectWithoutARecordedNameIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for i := range 1002 {
			name := fmt.Sprintf("w%04d", i)
			create(t, cluster, widgets, "ns", name)
			relabel(t, cluster, name, "error")
		}
		f := newFactory(t, cluster, dynamicinformer.WithTransform(rejectBad))
		l := syncedLease(t, f)
		for range 50 {
			relabel(t, cluster, "w1001", "error")
			synctest.Wait()
		}
		if got := l.Status().FailedObjects; got != 1002 {
			t.Errorf("%d failed objects, want 1002", got)
		}
		for i := range 1000 {
			deleteWidget(t, cluster, fmt.Sprintf("w%04d", i))
		}
		synctest.Wait()
		if got := l.Status(); got.FailedObjects != 2 {
			t.Errorf("%d failed objects (%s), want 2", got.FailedObjects, got.State)
		}
		shutdown(t, f)
	})
}

// LastFailed is always an object that is bad now.
func TestRejected_LastFailedIsABadObject(t *testing.T) {
	for name, opt := range map[string]dynamicinformer.Option{
		"transform": dynamicinformer.WithTransform(rejectBad),
		"index":     dynamicinformer.WithIndexers(cache.Indexers{"label": badIndex}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				create(t, cluster, widgets, "ns", "a")
				create(t, cluster, widgets, "ns", "b")
				f := newFactory(t, cluster, opt)
				l := syncedLease(t, f)
				relabel(t, cluster, "a", "error")
				synctest.Wait()
				relabel(t, cluster, "b", "error")
				synctest.Wait()
				relabel(t, cluster, "b", "")
				synctest.Wait()
				if got := l.Status(); got.FailedObjects != 1 || got.LastFailed != "ns/a" {
					t.Errorf("%d failed, the last one %q, want 1, ns/a", got.FailedObjects, got.LastFailed)
				}
				shutdown(t, f)
			})
		})
	}
}

func badIndex(obj any) ([]string, error) {
	if obj.(*unstructured.Unstructured).GetLabels()["bad"] != "" {
		return nil, errBad
	}
	return []string{"good"}, nil
}

// SyncedSince is the time from which the index is complete again.
func TestRejected_ByAnIndexFunctionSyncedSinceIsTheEndOfTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, dynamicinformer.WithIndexers(cache.Indexers{"label": badIndex}))
		l := syncedLease(t, f)
		relabel(t, cluster, "a", "error")
		time.Sleep(time.Minute)
		relabel(t, cluster, "a", "")
		time.Sleep(time.Minute)
		if got := l.Status(); got.State != status.StateSynced || got.Since.IsZero() {
			t.Errorf("%s since %v", got.State, got.Since)
		}
		shutdown(t, f)
	})
}

// A read of an index with an object of the caller does not change the status of the cache.
func TestIndexers_ReadsDoNotReportFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, dynamicinformer.WithIndexers(cache.Indexers{"label": badIndex}))
		l := syncedLease(t, f)
		mine := newObject("a", map[string]string{"bad": "error"})
		mine.SetNamespace("ns")
		if found, err := l.Informer().GetIndexer().Index("label", mine); err == nil {
			t.Errorf("Index found %v and no error for an object that the index function fails for", found)
		}
		if got := l.Status(); got.State != status.StateSynced {
			t.Errorf("after a read: %s (%s), %q", got.State, got.Reason, got.LastFailed)
		}
		relabel(t, cluster, "a", "error")
		synctest.Wait()
		mine.SetLabels(nil)
		_, _ = l.Informer().GetIndexer().Index("label", mine)
		if got := l.Status(); got.State != status.StateDegraded {
			t.Errorf("after a read with a bad object: %s", got.State)
		}
		shutdown(t, f)
	})
}

func TestIndexers_AddedLaterAreLikeTheFirst(t *testing.T) {
	for name, add := range map[string]func(cache.SharedIndexInformer, cache.Indexers) error{
		"to the informer": cache.SharedIndexInformer.AddIndexers,
		"to the indexer":  func(i cache.SharedIndexInformer, late cache.Indexers) error { return i.GetIndexer().AddIndexers(late) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				create(t, cluster, widgets, "ns", "a")
				create(t, cluster, widgets, "ns", "b")
				f := newFactory(t, cluster)
				l := syncedLease(t, f)
				twice := func(obj any) ([]string, error) {
					values, err := badIndex(obj)
					return append(values, values...), err
				}
				if err := add(l.Informer(), cache.Indexers{"late": twice}); err != nil {
					t.Fatal(err)
				}
				indexer := l.Informer().GetIndexer()
				found, err := indexer.Index("late", newObject("mine", nil))
				if err != nil || len(found) != 2 {
					t.Errorf("Index returns %d objects, %v, want both, once each", len(found), err)
				}
				if _, err := indexer.Index("late", newObject("mine", map[string]string{"bad": "error"})); !errors.Is(err, errBad) {
					t.Errorf("Index returns %v for an object that the function fails for", err)
				}
				delete(indexer.GetIndexers(), "late")
				if indexer.GetIndexers()["late"] == nil {
					t.Error("a program has removed the index")
				}
				relabel(t, cluster, "a", "error")
				synctest.Wait()
				if got := l.Status(); got.Reason != status.ReasonIndexFailed || got.Err == nil || got.Err.Error() != `index "late": `+errBad.Error() {
					t.Errorf("after a failure: %s (%s), %v", got.State, got.Reason, got.Err)
				}
				shutdown(t, f)
			})
		})
	}
}

// Objects of a watch-list that fails are not delivered, and do not count as waiting.
func TestBacklog_DoesNotCountObjectsOfAFailedWatchList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for i := range 100 {
			create(t, cluster, widgets, "ns", fmt.Sprintf("w%02d", i))
		}
		cluster.MuteInitialEventsEnd()
		f := newFactory(t, cluster)
		l := acquire(t, f, widgets)
		listen(t, l.Informer())
		f.Start(t.Context())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 300 {
			relabel(t, cluster, "w00", "x")
			time.Sleep(500 * time.Millisecond)
			l.Status()
		}
		if h := l.Status().Handlers[0]; h.Backlog != 0 || !h.BehindSince.IsZero() {
			t.Errorf("an idle handler has a backlog of %d since %v, %d delivered", h.Backlog, h.BehindSince, h.Delivered)
		}
		shutdown(t, f)
	})
}

// embedding inherits DeepCopyObject from an embedded type.
type embedding struct {
	*unstructured.Unstructured
	extra string
}

// A synthetic deletion has the type of the cached object, also if that type inherits DeepCopyObject. Handlers
// assert the type.
func TestTransform_SyntheticDeletionsHaveTheTypeOfTheCachedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithTransform(func(obj any) (any, error) {
			return &embedding{obj.(*unstructured.Unstructured), "x"}, nil
		}))
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		var got []string
		if _, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) { got = append(got, fmt.Sprintf("%T", obj)) }}); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cluster.Withdraw(widgets)
		time.Sleep(5 * time.Minute)
		shutdown(t, f)
		if diff := cmp.Diff([]string{"*dynamicinformer_test.embedding"}, got); diff != "" {
			t.Errorf("deleted (-want +got):\n%s", diff)
		}
	})
}

// The transform renames an object, and later fails for it. The object is deleted when the server deletes it.
func TestTransform_RenamedObjectsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, dynamicinformer.WithTransform(func(obj any) (any, error) {
			object := obj.(*unstructured.Unstructured)
			if object.GetLabels()["bad"] != "" {
				return nil, errBad
			}
			object.SetName("x-" + object.GetName())
			return object, nil
		}))
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		events := listen(t, l.Informer())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		relabel(t, cluster, "a", "error")
		synctest.Wait()
		deleteWidget(t, cluster, "a")
		time.Sleep(time.Minute)
		if keys := l.Informer().GetStore().ListKeys(); len(keys) > 0 {
			t.Errorf("the server has nothing, the cache %v; events %v; state %s", keys, events.take(), l.Status().State)
		}
		shutdown(t, f)
	})
}

// Objects of a watch-list that fails are not in the cache.
func TestStatus_DoesNotCountObjectsOfAFailedWatchList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for _, name := range []string{"a", "b", "c"} {
			create(t, cluster, widgets, "ns", name)
		}
		cluster.MuteInitialEventsEnd()
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" {
				return apierrors.NewForbidden(schema.GroupResource{}, "", nil)
			}
			return nil
		})
		f := newFactory(t, cluster)
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		time.Sleep(time.Minute)
		if got, cached := l.Status(), len(l.Informer().GetStore().List()); got.Objects != cached {
			t.Errorf("%d objects in the status (%s, %s, flushing %t), %d in the cache", got.Objects, got.State, got.Reason, got.Flushing, cached)
		}
		shutdown(t, f)
	})
}
