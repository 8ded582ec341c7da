package dynamicinformer_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
			t.Error("an informer ran that Start had not started")
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

func TestNewFilteredDynamicInformer_RunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "in")
		create(t, cluster, widgets, "other", "out")
		generic := dynamicinformer.NewFilteredDynamicInformer(cluster, widgets, "ns", 0, nil, nil)
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); generic.Informer().RunWithContext(ctx) }()
		synctest.Wait()
		keys := generic.Informer().GetStore().ListKeys()
		if diff := cmp.Diff([]string{"ns/in"}, slices.Sorted(slices.Values(keys))); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		cancel()
		<-ended
	})
}
