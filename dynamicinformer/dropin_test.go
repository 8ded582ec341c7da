package dynamicinformer_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestDropIn_NilClientFailsWithoutPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		factory := dynamicinformer.NewDynamicSharedInformerFactory(nil, 0)
		factory.ForResource(widgets)
		factory.Start(ctx.Done())
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		got := factory.WaitForCacheSync(short.Done())
		if diff := cmp.Diff(map[schema.GroupVersionResource]bool{widgets: false}, got); diff != "" {
			t.Errorf("WaitForCacheSync (-want +got):\n%s", diff)
		}
	})
}

func TestDropIn_NeverStartsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType, blockType)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(cluster, 0)
		factory.ForResource(widgets)
		factory.Start(ctx.Done())
		factory.ForResource(blocks)
		got := factory.WaitForCacheSync(ctx.Done())
		if diff := cmp.Diff(map[schema.GroupVersionResource]bool{widgets: true}, got); diff != "" {
			t.Errorf("WaitForCacheSync covers the started informers (-want +got):\n%s", diff)
		}
		if got := cluster.OpenWatches(blocks); got != 0 {
			t.Error("an informer ran without Start")
		}
	})
}

func TestDropIn_ViewOfAStartedFactoryDoesNotStartInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		start(ctx, f)
		f.DropIn().ForResource(widgets)
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Error("ForResource of the view started an informer")
		}
		f.ForResource(widgets)
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 1 {
			t.Error("ForResource of the factory did not start the informer that the view had made")
		}
		shutdown(t, f)
	})
}

func TestDropIn_InformerEndsWithTheChannelOfItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(cluster, 0)
		factory.ForResource(widgets)
		first, second := make(chan struct{}), make(chan struct{})
		factory.Start(first)
		factory.Start(second)
		synctest.Wait()
		close(second)
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("open watches = %d, want only that of the first Start", got)
		}
		close(first)
		factory.Shutdown()
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches after Shutdown = %d", got)
		}
	})
}

func TestDropIn_StartAfterShutdownHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(cluster, 0)
		factory.Shutdown()
		factory.ForResource(widgets)
		factory.Start(ctx.Done())
		synctest.Wait()
		if got := len(cluster.Requests("watch", widgets)); got != 0 {
			t.Errorf("watches = %d, want 0", got)
		}
	})
}

func TestDropIn_FilteredFactoryUsesAllArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "in")
		create(t, cluster, widgets, "ns", "out")
		create(t, cluster, widgets, "other", "in")
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(cluster, time.Minute, "ns",
			func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=in" })
		events := listen(t, factory.ForResource(widgets).Informer())
		factory.Start(ctx.Done())
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/in", "update ns/in"}, events.take()); diff != "" {
			t.Errorf("events of a minute, including resyncs (-want +got):\n%s", diff)
		}
	})
}

func TestDropIn_WaitForCacheSyncDoesNotPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		factory := dynamicinformer.NewDynamicSharedInformerFactory(fakecluster.New(widgetType), 0)
		factory.ForResource(widgets)
		factory.Start(ctx.Done())
		begun := time.Now()
		factory.WaitForCacheSync(ctx.Done())
		if took := time.Since(begun); took != 0 {
			t.Errorf("took %v of fake time", took)
		}
	})
}

func TestDropIn_ShutdownWaitsForStopChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(cluster, 0)
		factory.ForResource(widgets)
		stop := make(chan struct{})
		factory.Start(stop)
		down := make(chan struct{})
		go func() { defer close(down); factory.Shutdown() }()
		synctest.Wait()
		select {
		case <-down:
			t.Error("Shutdown returned before the stop channel was closed")
		default:
		}
		if got := cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("Shutdown ended a watch that is its caller's to end: %d open", got)
		}
		close(stop)
		<-down
	})
}

// The end of Start's context does not end what another channel ends. Shutdown does.
func TestDropIn_InformerGoesOnAfterTheEndOfTheFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.DropIn().ForResource(widgets)
		f.DropIn().Start(make(chan struct{}))
		ctx, cancel := context.WithCancel(t.Context())
		f.Start(ctx)
		time.Sleep(time.Minute)
		cancel()
		time.Sleep(time.Minute)
		if n := cluster.OpenWatches(widgets); n != 1 {
			t.Errorf("%d open watches after the end of the context", n)
		}
		shutdown(t, f)
		if n := cluster.OpenWatches(widgets); n != 0 {
			t.Errorf("%d open watches after Shutdown", n)
		}
	})
}

func TestDropIn_SilentWatchListFallsBackToList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		cluster.MuteInitialEventsEnd()
		create(t, cluster, widgets, "ns", "a")
		factory := dynamicinformer.NewDynamicSharedInformerFactory(cluster, 0)
		events := listen(t, factory.ForResource(widgets).Informer())
		factory.Start(ctx.Done())
		begun := time.Now()
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if got := factory.WaitForCacheSync(short.Done()); !got[widgets] {
			t.Fatal("not synced")
		}
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("synced after %v, want 10 s", took)
		}
		create(t, cluster, widgets, "ns", "b")
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a", "add ns/b"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestNewFilteredDynamicInformer_GetsItsFirstIndexLater(t *testing.T) {
	informer := dynamicinformer.NewFilteredDynamicInformer(fakecluster.New(widgetType), widgets, "ns", 0, nil, nil).Informer()
	if err := informer.AddIndexers(cache.Indexers{"all": func(any) ([]string, error) { return []string{""}, nil }}); err != nil {
		t.Fatal(err)
	}
	if got := len(informer.GetIndexer().GetIndexers()); got != 1 {
		t.Errorf("%d indexers, want 1", got)
	}
}

// The store of client-go writes to its map of index functions, which must not be one that others read.
func TestNewFilteredDynamicInformer_AddIndexersConcurrently(t *testing.T) {
	none := func(any) ([]string, error) { return nil, nil }
	for range 50 {
		own := cache.Indexers{"own": none}
		informer := dynamicinformer.NewFilteredDynamicInformer(fakecluster.New(widgetType), widgets, "", 0, own, nil).Informer()
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if err := informer.AddIndexers(cache.Indexers{fmt.Sprint(i): none}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := len(informer.GetIndexer().GetIndexers()); got != 5 || len(own) != 1 {
			t.Fatalf("%d indexers, want 5; the caller's map has %d, want 1", got, len(own))
		}
	}
}

func TestNewFilteredDynamicInformer_RunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "in")
		create(t, cluster, widgets, "other", "out")
		byName := func(obj any) ([]string, error) { return []string{obj.(*unstructured.Unstructured).GetName()}, nil }
		generic := dynamicinformer.NewFilteredDynamicInformer(cluster, widgets, "ns", 0, cache.Indexers{"name": byName}, nil)
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); generic.Informer().RunWithContext(ctx) }()
		synctest.Wait()
		keys := generic.Informer().GetStore().ListKeys()
		if diff := cmp.Diff([]string{"ns/in"}, slices.Sorted(slices.Values(keys))); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		found, err := generic.Informer().GetIndexer().ByIndex("name", "in")
		if err != nil || len(found) != 1 {
			t.Errorf("the indexer of the caller: %v, %v", found, err)
		}
		if _, byNamespace := generic.Informer().GetIndexer().GetIndexers()[cache.NamespaceIndex]; byNamespace {
			t.Error("there is another indexer")
		}
		cancel()
		<-ended
	})
}

// client-go's reflector would resync without a pause.
func TestDropIn_NegativeResyncPeriodMeansNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		informer := dynamicinformer.NewFilteredDynamicInformer(cluster, widgets, "ns", -time.Second, nil, nil).Informer()
		var updates atomic.Int32
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) {
			if updates.Add(1) > 1000 {
				panic("a resync without a pause")
			}
		}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		informer.RunWithContext(ctx)
		if got := updates.Load(); got != 0 {
			t.Errorf("%d updates", got)
		}
	})
}

// The program may use only handlers, and no lister.
func TestDropIn_ReleasesTheCacheOfAReplacedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster)
		f.Start(t.Context())
		view := f.DropIn()
		cached := func() weak.Pointer[unstructured.Unstructured] {
			stop := make(chan struct{})
			defer close(stop)
			old := view.ForResource(widgets).Informer()
			go old.Run(stop)
			time.Sleep(time.Minute)
			item, there, err := old.GetStore().GetByKey("ns/a")
			if !there || err != nil {
				t.Fatalf("found: %v, %v", there, err)
			}
			return weak.Make(item.(*unstructured.Unstructured))
		}()
		time.Sleep(time.Minute)
		events, stop := listen(t, view.ForResource(widgets).Informer()), make(chan struct{})
		go view.ForResource(widgets).Informer().Run(stop)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"add ns/a"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		for range 3 {
			runtime.GC()
		}
		if cached.Value() != nil {
			t.Error("the cache of the old informer is still in memory")
		}
		close(stop)
		time.Sleep(time.Minute)
		shutdown(t, f)
	})
}
