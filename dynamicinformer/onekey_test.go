package dynamicinformer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

func TestAcquire_SharesWithForResource(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		l := acquire(t, f, widgets)
		informer := f.ForResource(widgets).Informer()
		if got := l.Status(); !got.Pinned || got.Leases != 1 {
			t.Errorf("status: %+v", got)
		}
		l.Release()
		synctest.Wait()
		if !informer.HasSynced() || informer.IsStopped() || cluster.OpenWatches(widgets) != 1 {
			t.Error("the release has ended the informer of ForResource")
		}
		again := acquire(t, f, widgets)
		synctest.Wait()
		if got := len(cluster.Requests("watch", widgets)); got != 1 {
			t.Errorf("watches = %d, want 1", got)
		}
		again.Release()

		// ForResource does not share an informer with other options than the factory's.
		red := acquire(t, f, blocks, dynamicinformer.WithLabelSelector("color=red"))
		create(t, cluster, blocks, "", "a")
		whole := f.ForResource(blocks)
		synctest.Wait()
		if got := len(whole.Informer().GetStore().ListKeys()); got != 1 {
			t.Errorf("ForResource has %d objects, want 1", got)
		}
		if got := len(red.Informer().GetStore().ListKeys()); got != 0 {
			t.Errorf("the lease has %d objects, want none", got)
		}
		if f.ForResource(blocks) != whole {
			t.Error("ForResource returns another one")
		}
	})
}

func TestAcquire_ConflictsAreNamed(t *testing.T) {
	keep := func(obj any) (any, error) { return obj, nil }
	other := func(obj any) (any, error) { return obj, nil }
	index := func(obj any) ([]string, error) { return nil, nil }
	for option, tc := range map[string]struct {
		have, want dynamicinformer.LeaseOption
	}{
		"WithNamespace":         {dynamicinformer.WithNamespace("a"), dynamicinformer.WithNamespace("b")},
		"WithNamespaces":        {nil, dynamicinformer.WithNamespaces("a", "b")},
		"WithLabelSelector":     {nil, dynamicinformer.WithLabelSelector("color=red")},
		"WithFieldSelector":     {dynamicinformer.WithFieldSelector("metadata.name=a"), nil},
		"WithTransform":         {dynamicinformer.WithTransform(keep), dynamicinformer.WithTransform(other)},
		"WithTweakListOptions":  {nil, dynamicinformer.WithTweakListOptions(func(*metav1.ListOptions) {})},
		"WithResync":            {dynamicinformer.WithResync(time.Hour), dynamicinformer.WithResync(time.Minute)},
		"WithWatchListPolicy":   {nil, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever)},
		"WithPageSize":          {dynamicinformer.WithPageSize(10), dynamicinformer.WithPageSize(20)},
		"WithStrictDecoding":    {nil, dynamicinformer.WithStrictDecoding()},
		"WithPolling":           {dynamicinformer.WithPolling(time.Minute), dynamicinformer.WithPolling(time.Hour)},
		"WithRemovalPolicy":     {nil, dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache)},
		"WithWatchErrorHandler": {nil, dynamicinformer.WithWatchErrorHandler(func(context.Context, *cache.Reflector, error) {})},
		"WithIndexers": {
			dynamicinformer.WithIndexers(cache.Indexers{"x": index}),
			dynamicinformer.WithIndexers(cache.Indexers{"x": func(obj any) ([]string, error) { return []string{"y"}, nil }}),
		},
	} {
		t.Run(option, func(t *testing.T) {
			inLeases(t, func(in bubble) {
				t, f := in.T, in.factory
				first := acquire(t, f, widgets, tc.have)
				_, err := f.Acquire(t.Context(), widgets, tc.want)
				conflict, is := errors.AsType[*dynamicinformer.ConflictError](err)
				if !is || !errors.Is(err, dynamicinformer.ErrConflict) || conflict.Option != option || conflict.GVR != widgets || conflict.Have == "" || conflict.Want == "" {
					t.Fatalf("error = %v, want a conflict about %s", err, option)
				}
				acquire(t, f, widgets, tc.have).Release() // equal options do not conflict
				own := acquire(t, f, widgets, tc.want, dynamicinformer.WithSeparateInformer())
				if err := own.WaitForSync(t.Context()); err != nil {
					t.Error(err)
				}
				first.Release()
				acquire(t, f, widgets, tc.want) // after the release of the first lease
			})
		})
	}
}

func TestAcquire_IndexersAreAdded(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		byName := func(obj any) ([]string, error) {
			object, err := meta.Accessor(obj)
			return []string{object.GetName()}, err
		}
		create(t, cluster, widgets, "ns", "a")
		first := acquire(t, f, widgets)
		if err := first.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			l := acquire(t, f, widgets, dynamicinformer.WithIndexers(cache.Indexers{"name": byName}))
			found, err := l.Informer().GetIndexer().ByIndex("name", "a")
			if err != nil || len(found) != 1 {
				t.Errorf("by index: %v, %v", found, err)
			}
		}
	})
}

// As in client-go, the index by namespace may be another one.
func TestAcquire_IndexersReplaceTheOneByNamespace(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		create(t, cluster, widgets, "ns", "a")
		create(t, cluster, widgets, "ns", "bad")
		relabel(t, cluster, "bad", "x")
		l := acquire(t, f, widgets, dynamicinformer.WithIndexers(cache.Indexers{cache.NamespaceIndex: func(obj any) ([]string, error) {
			if isBad(obj) {
				panic(errBad)
			}
			return []string{"all"}, nil
		}}))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found, err := l.Informer().GetIndexer().ByIndex(cache.NamespaceIndex, "all"); err != nil || len(found) != 1 {
			t.Errorf("by index: %v, %v", found, err)
		}
		synctest.Wait()
		if got := l.Status().Reason; got != status.ReasonIndexFailed {
			t.Errorf("reason %q", got)
		}
	})
}

// The index by namespace that each informer has is like one of WithIndexers: leases with the same function share it, and
// another function is a conflict.
func TestAcquire_IndexByNamespaceIsCompared(t *testing.T) {
	all := func(any) ([]string, error) { return []string{"all"}, nil }
	byNamespace := dynamicinformer.WithIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	another := dynamicinformer.WithIndexers(cache.Indexers{cache.NamespaceIndex: all})
	for name, first := range map[string]dynamicinformer.LeaseOption{
		"without indexers": nil, "with another index": dynamicinformer.WithIndexers(cache.Indexers{"x": all}), "with that index": byNamespace,
	} {
		t.Run(name, func(t *testing.T) {
			inLeases(t, func(in bubble) {
				t, f := in.T, in.factory
				acquire(t, f, widgets, first)
				acquire(t, f, widgets, byNamespace)
				if got := len(f.Status()); got != 1 {
					t.Errorf("%d informers, want 1", got)
				}
				l, err := f.Acquire(t.Context(), widgets, another)
				if conflict, is := errors.AsType[*dynamicinformer.ConflictError](err); !is || conflict.Option != "WithIndexers" {
					t.Errorf("another function: %v, %v, want a conflict", l, err)
				}
			})
		})
	}
}

// A lease that has only the usual index by namespace may have created the informer.
func TestForResource_HasTheFactorysIndexByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := func(any) ([]string, error) { return []string{"all"}, nil }
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, dynamicinformer.WithIndexers(cache.Indexers{cache.NamespaceIndex: all}))
		acquire(t, f, widgets, dynamicinformer.WithIndexers(cache.Indexers{"x": all}))
		informer := f.ForResource(widgets).Informer()
		start(t.Context(), f)
		if found, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, "all"); err != nil || len(found) != 1 {
			t.Errorf("by the factory's index: %v, %v", found, err)
		}
		shutdown(t, f)
	})
}

// ForResource gets its own informer if there is a lease with other options, and then always returns that
// informer.
func TestForResource_ReturnsTheSameInformerWithAnyLeases(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		red := acquire(t, f, widgets, dynamicinformer.WithLabelSelector("color=red"))
		first := f.ForResource(widgets)
		red.Release()
		if f.ForResource(widgets) != first {
			t.Error("ForResource returns another one when the lease has gone")
		}
		blue := acquire(t, f, widgets, dynamicinformer.WithLabelSelector("color=blue"))
		same := acquire(t, f, widgets) // shares with ForResource
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 2 {
			t.Errorf("open watches = %d, want one for blue and one for the others", got)
		}
		same.Release()
		blue.Release()
	})
}

// A lease shares ForResource's informer also if there is no lease with other options any more, or one that lingers.
func TestAcquire_SharesWithForResourceBesideAReleasedLease(t *testing.T) {
	for name, opts := range map[string][]dynamicinformer.LeaseOption{"released": nil, "lingering": {dynamicinformer.WithLinger(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			inLeases(t, func(in bubble) {
				t, f := in.T, in.factory
				red := acquire(t, f, widgets, append(opts, dynamicinformer.WithLabelSelector("color=red"))...)
				first := f.ForResource(widgets).Informer()
				red.Release()
				synctest.Wait()
				before := len(f.Status())
				l := acquire(t, f, widgets)
				if got := len(f.Status()); got != before {
					t.Errorf("%d informers, want %d", got, before)
				}
				if !l.Status().Pinned {
					t.Error("the lease does not have the informer of ForResource")
				}
				for _, other := range []dynamicinformer.LeaseOption{dynamicinformer.WithSeparateInformer(), dynamicinformer.WithLabelSelector("color=blue")} {
					if acquire(t, f, widgets, other).Status().Pinned {
						t.Error("a lease with other options has the informer of ForResource")
					}
				}
				if f.ForResource(widgets).Informer() != first {
					t.Error("ForResource returns another one")
				}
			})
		})
	}
}

func TestAcquire_OtherOptionsReplaceALingeringInformer(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		acquire(t, f, widgets, dynamicinformer.WithLinger(time.Hour)).Release()
		red := acquire(t, f, widgets, dynamicinformer.WithLabelSelector("color=red"))
		if err := red.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("open watches = %d, want 1", got)
		}
	})
}

// After an error, the informer has none of the new indexes.
func TestAcquire_IndexersThatCannotBeAdded(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, f := in.T, in.factory
		index := func(any) ([]string, error) { return nil, nil }
		informer := f.ForResource(widgets).Informer()
		if err := informer.AddIndexers(cache.Indexers{"x": index}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if l, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithIndexers(cache.Indexers{"x": index})); err == nil {
				t.Errorf("no error for an index of another lease: %v", l)
			}
		}
	})
}

func TestAcquire_InformerThatWasRunByHandIsNotShared(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster := in.T, in.cluster
		f := newFactory(t, cluster)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		informer := f.ForResource(widgets).Informer()
		go func() { defer close(ended); informer.RunWithContext(ctx) }()
		synctest.Wait()
		cancel()
		<-ended
		synctest.Wait() // Run does not wait for the end of its watch
		l := acquire(t, f, widgets)
		f.Start(t.Context())
		if _, err := l.AddEventHandler(&recorder{}); err != nil {
			t.Error(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		shutdown(t, f)
	})
}

// It knows the type as it was.
func TestAcquire_InformerThatWasRunByHandDoesNotValidate(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster := in.T, in.cluster
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		for _, gvr := range []schema.GroupVersionResource{widgets, blocks} {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			informer := f.ForResource(gvr).Informer()
			go func() { defer close(ended); informer.RunWithContext(ctx) }()
			synctest.Wait()
			cancel()
			<-ended
			synctest.Wait()
		}
		if kind := acquire(t, f, widgets).Resource().GVK.Kind; kind != "Widget" {
			t.Errorf("the kind is %q", kind)
		}
		cluster.Withdraw(blocks)
		if _, err := f.Acquire(t.Context(), blocks); !errors.Is(err, discovery.ErrNotServed) {
			t.Errorf("the type is gone: %v", err)
		}
		shutdown(t, f)
	})
}

// A lease ends by its release, or with the factory.
func TestDropIn_DoesNotStartOrStopLeases(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster := in.T, in.cluster
		f := newFactory(t, cluster)
		l := acquire(t, f, widgets)
		stop := make(chan struct{})
		f.DropIn().ForResource(blocks)
		f.DropIn().Start(stop)
		synctest.Wait()
		if got := len(f.DropIn().WaitForCacheSync(stop)); got != 1 || cluster.OpenWatches(widgets) != 0 {
			t.Errorf("synced %d, and %d watches of the lease", got, cluster.OpenWatches(widgets))
		}
		close(stop)
		if isDone(l) {
			t.Error("the lease has ended with the drop-in's channel")
		}
		f.Start(t.Context())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		shutdown(t, f)
	})
}

// A lease with a selector begins while ForResource creates its informer.
func TestForResource_NeverReturnsAFilteredInformer(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	for range 200 {
		f := newFactory(t, cluster)
		var red *dynamicinformer.Lease
		var acquiring sync.WaitGroup
		acquiring.Go(func() {
			// It fails with a conflict if ForResource was first.
			red, _ = f.Acquire(t.Context(), widgets, dynamicinformer.WithLabelSelector("color=red"))
		})
		f.ForResource(widgets)
		acquiring.Wait()
		if red != nil && red.Status().Pinned {
			t.Fatal("ForResource has returned the informer of the lease")
		}
		shutdown(t, f)
	}
}

// Several leases with the same new index begin at the same time.
func TestAcquire_IndexersExistWhenItReturns(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	index := func(any) ([]string, error) { return nil, nil }
	for range 400 {
		f := newFactory(t, cluster)
		acquire(t, f, widgets)
		var acquiring sync.WaitGroup
		for range 3 {
			acquiring.Go(func() {
				l, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithIndexers(cache.Indexers{"x": index}))
				if err != nil {
					t.Error(err)
				} else if _, err = l.Informer().GetIndexer().ByIndex("x", ""); err != nil {
					t.Error(err)
				}
			})
		}
		acquiring.Wait()
		shutdown(t, f)
	}
}

// Several leases begin at the same time, and their indexes have the same name.
func TestAcquire_OneIndexOfAName(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	for range 150 {
		f := newFactory(t, cluster)
		acquire(t, f, widgets)
		var acquiring sync.WaitGroup
		var acquired atomic.Int32
		for range 3 {
			acquiring.Go(func() {
				var own int
				_, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithIndexers(cache.Indexers{"x": func(any) ([]string, error) { own++; return nil, nil }}))
				if err == nil {
					acquired.Add(1)
				} else if !errors.Is(err, dynamicinformer.ErrConflict) {
					t.Error(err)
				}
			})
		}
		acquiring.Wait()
		if got := acquired.Load(); got != 1 {
			t.Fatalf("%d leases have an index of that name, want 1", got)
		}
		shutdown(t, f)
	}
}
