package dynamicinformer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// implementation is one of the packages that the tables compare.
type implementation struct {
	name        string
	packed      bool // its caches are packed
	newFactory  func(client dynamic.Interface, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) upstream.DynamicSharedInformerFactory
	newInformer func(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer

	// newDiscovering returns a factory with discovery, if the package has it, in client-go's form.
	newDiscovering func(t *testing.T, cluster *fakecluster.Cluster, namespace string) upstream.DynamicSharedInformerFactory

	// newForConfig returns a factory with the package's usual client, without discovery.
	newForConfig func(t *testing.T, cfg *rest.Config) upstream.DynamicSharedInformerFactory
}

var clientGo = implementation{
	name: "client-go",
	newFactory: func(client dynamic.Interface, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) upstream.DynamicSharedInformerFactory {
		return upstream.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)
	},
	newInformer: func(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
		return upstream.NewFilteredDynamicInformer(client, gvr, namespace, resync, indexers, tweak)
	},
	newDiscovering: func(_ *testing.T, cluster *fakecluster.Cluster, namespace string) upstream.DynamicSharedInformerFactory {
		return upstream.NewFilteredDynamicSharedInformerFactory(cluster, 0, namespace, nil)
	},
	newForConfig: func(t *testing.T, cfg *rest.Config) upstream.DynamicSharedInformerFactory {
		t.Helper()
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return upstream.NewDynamicSharedInformerFactory(client, 0)
	},
}

var gvrkit = implementation{
	name: "gvrkit",
	newFactory: func(client dynamic.Interface, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) upstream.DynamicSharedInformerFactory {
		return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)
	},
	newInformer: dynamicinformer.NewFilteredDynamicInformer,
	newDiscovering: func(t *testing.T, cluster *fakecluster.Cluster, namespace string) upstream.DynamicSharedInformerFactory {
		t.Helper()
		return newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithNamespace(namespace)).DropIn()
	},
	newForConfig: func(t *testing.T, cfg *rest.Config) upstream.DynamicSharedInformerFactory {
		t.Helper()
		f, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithDiscovery(nil))
		if err != nil {
			t.Fatal(err)
		}
		return f.DropIn()
	},
}

// gvrkitPacked is gvrkit with packed caches.
var gvrkitPacked = func() implementation {
	packed := gvrkit
	packed.name, packed.packed = "gvrkit with packed caches", true
	return packed
}()

// behaviour is a row of a table: a behaviour of factories or informers.
type behaviour struct {
	name  string
	holds func(r *trial)
}

// trial is the test of a row with one implementation, in its own bubble, on a cluster with both types
// and without objects.
type trial struct {
	implementation
	t       *testing.T
	cluster *fakecluster.Cluster
	stop    <-chan struct{} // closes at the end of the row

	problems []string
}

// errorf records that the implementation does not have the behaviour. This does not fail the test:
// for a difference, client-go must not have it.
func (r *trial) errorf(format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// plain returns a factory on the trial's cluster without any options.
func (r *trial) plain() upstream.DynamicSharedInformerFactory {
	return r.newFactory(r.cluster, 0, metav1.NamespaceAll, nil)
}

// run starts factory until the end of the trial, and waits until all goroutines are idle.
func (r *trial) run(factory upstream.DynamicSharedInformerFactory) {
	factory.Start(r.stop)
	synctest.Wait()
}

// synced waits at most d for the factory's caches, and returns whether that of gvr has synced.
func (r *trial) synced(factory upstream.DynamicSharedInformerFactory, d time.Duration, gvr schema.GroupVersionResource) bool {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	return factory.WaitForCacheSync(ctx.Done())[gvr]
}

// try runs a row and returns its errors.
func try(t *testing.T, impl implementation, row behaviour) (problems []string) {
	t.Helper()
	if impl.packed {
		t.Setenv("GVRKIT_PACKED_CACHES", "true")
	}
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		r := &trial{implementation: impl, t: t, cluster: fakecluster.New(widgetType, blockType), stop: stop}
		row.holds(r)
		close(stop) // a goroutine that does not end fails the bubble
		problems = r.problems
	})
	return problems
}

func TestConformance(t *testing.T) {
	for _, row := range conformance {
		for _, impl := range []implementation{clientGo, gvrkit, gvrkitPacked} {
			t.Run(row.name+"/"+impl.name, func(t *testing.T) {
				for _, problem := range try(t, impl, row) {
					t.Error(problem)
				}
			})
		}
	}
}
