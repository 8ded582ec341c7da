package dynamicinformer_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// benchFactories returns a synced factory of each package on a cluster with this number of
// widgets.
func benchFactories(b *testing.B, objects int) map[string]dynamicinformer.DynamicSharedInformerFactory {
	b.Helper()
	cluster := fakecluster.New(widgetType)
	for i := range objects {
		obj := newObject(fmt.Sprintf("w-%05d", i), nil)
		if _, err := cluster.Resource(widgets).Namespace("ns").Create(b.Context(), obj, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	factories := map[string]dynamicinformer.DynamicSharedInformerFactory{}
	for _, impl := range []implementation{clientGo, gvrkit} {
		f := impl.newFactory(cluster, 0, metav1.NamespaceAll, nil)
		f.ForResource(widgets)
		ctx, stop := context.WithCancel(b.Context())
		b.Cleanup(func() { stop(); f.Shutdown() })
		f.Start(ctx.Done())
		if synced := f.WaitForCacheSync(ctx.Done()); !synced[widgets] {
			b.Fatal("not synced")
		}
		factories[impl.name] = f
	}
	return factories
}

func BenchmarkForResource(b *testing.B) {
	for name, f := range benchFactories(b, 1) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					f.ForResource(widgets)
				}
			})
		})
	}
}

func BenchmarkLister(b *testing.B) {
	const objects = 1000
	for name, f := range benchFactories(b, objects) {
		lister := f.ForResource(widgets).Lister().ByNamespace("ns")
		b.Run(fmt.Sprintf("%s/get/objects=%d", name, objects), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := lister.Get("w-00500"); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%s/list/objects=%d", name, objects), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if all, err := lister.List(labels.Everything()); err != nil || len(all) != objects {
					b.Fatal(len(all), err)
				}
			}
		})
	}
}

// BenchmarkStatus reads the status of a thousand synced informers, as a scrape or a page does.
func BenchmarkStatus(b *testing.B) {
	const types = 1000
	var served []fakecluster.Type
	for i := range types {
		one := widgetType
		one.GVR.Resource = fmt.Sprintf("widgets%04d", i)
		served = append(served, one)
	}
	f, err := dynamicinformer.New(fakecluster.New(served...))
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	f.Start(ctx)
	for _, one := range served {
		l, err := f.Acquire(ctx, one.GVR, dynamicinformer.WithLeaseName("bench"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.WaitForSync(ctx); err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("types=%d", types), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got := len(f.Status()); got != types {
				b.Fatalf("%d types", got)
			}
		}
	})
	b.Run("explain", func(b *testing.B) {
		gvr := widgets
		gvr.Resource = "widgets0500"
		for b.Loop() {
			if len(f.Explain(gvr).Chain) == 0 {
				b.Fatal("no explanation")
			}
		}
	})
	if err := f.Shutdown(b.Context()); err != nil {
		b.Fatal(err)
	}
}
