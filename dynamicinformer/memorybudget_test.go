package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/packed"
	"github.com/gvrkit/gvrkit/status"
)

// largeObject returns an object with that number of small maps, and words of ordinary text.
func largeObject(i, maps int) *unstructured.Unstructured {
	words := strings.Fields("the cache of an informer has all objects that server and user know by name and kind")
	r := rand.New(rand.NewPCG(uint64(i), 3))
	attributes := make([]any, maps)
	for n := range attributes {
		note := make([]string, 8)
		for w := range note {
			note[w] = words[r.IntN(len(words))]
		}
		handle, node := fmt.Sprintf("handle-%d-%d", i, n), fmt.Sprintf("node-%d", r.IntN(50))
		attributes[n] = map[string]any{"handle": handle, "node": node, "index": int64(n), "note": strings.Join(note, " ")}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": fmt.Sprintf("o%04d", i), "labels": map[string]any{"app": "large"}}, "spec": map[string]any{"attributes": attributes},
	}}
}

// largeMaps is the number of maps in an object. Packed objects are larger, so that what they have in common, which stays when objects are deleted, is
// a small part of the cache.
func largeMaps() int {
	if packedCaches {
		return 300
	}
	return 60
}

// createLarge creates objects from the number from on, in namespace.
func createLarge(t *testing.T, cluster *fakecluster.Cluster, of fakecluster.Type, namespace string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		object := largeObject(i+1000*int(namespace[len(namespace)-1]), largeMaps()) // namespaces have nothing in common
		object.SetName(fmt.Sprintf("o%04d", i))
		if _, err := cluster.Resource(of.GVR).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func deleteLarge(t *testing.T, cluster *fakecluster.Cluster, of fakecluster.Type, namespace string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := cluster.Resource(of.GVR).Namespace(namespace).Delete(t.Context(), fmt.Sprintf("o%04d", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// bytesOf returns the memory of a cache of the type.
func bytesOf(t *testing.T, cluster *fakecluster.Cluster, of fakecluster.Type, opts ...dynamicinformer.Option) int64 {
	t.Helper()
	f := newFactory(t, cluster, opts...)
	f.Start(t.Context())
	l := acquire(t, f, of.GVR)
	waitSynced(t, l)
	bytes := l.Status().CacheBytes
	shutdown(t, f)
	return bytes
}

// waitSynced waits for at most an hour of the bubble's time.
func waitSynced(t *testing.T, l *dynamicinformer.Lease) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := l.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
}

// waitRefused waits until the first list of l is refused, and returns the error.
func waitRefused(t *testing.T, l *dynamicinformer.Lease) *budget.OverError {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	err := l.WaitForSync(ctx, dynamicinformer.WithFailFast())
	notSynced, is := errors.AsType[*status.NotSyncedError](err)
	over, refused := errors.AsType[*budget.OverError](err)
	if !is || !refused || ctx.Err() != nil || notSynced.Reason != status.ReasonOverBudget {
		t.Fatalf("not refused: %v", err)
	}
	return over
}

// checkBudget checks that the budget has the sum of the caches, and nothing else.
func checkBudget(t *testing.T, f *dynamicinformer.Factory) {
	t.Helper()
	synctest.Wait()
	var caches int64
	for _, i := range f.Status() {
		caches += i.CacheBytes
	}
	if b := f.MemoryBudget(); b.Lists != 0 || b.Caches != caches {
		t.Errorf("the budget is %+v, the caches have %d bytes", b, caches)
	}
}

// budgetCluster is a cluster with types in a bubble.
type budgetCluster struct {
	*testing.T
	types   []fakecluster.Type
	cluster *fakecluster.Cluster
}

// inBudget runs test in a bubble, in which nothing is left.
func inBudget(t *testing.T, test func(in budgetCluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		types := manyTypes(4)
		test(budgetCluster{t, types, fakecluster.New(types...)})
	})
}

func TestMemoryBudget_RefusesATypeUntilThereIsRoom(t *testing.T) {
	for name, tc := range map[string]struct {
		release func(t *testing.T, cluster *fakecluster.Cluster, of fakecluster.Type, l *dynamicinformer.Lease)
		within  time.Duration
	}{
		"a lease is released": {func(_ *testing.T, _ *fakecluster.Cluster, _ fakecluster.Type, l *dynamicinformer.Lease) { l.Release() }, watchGrace},
		// The list may begin before the last deletion, and be refused once more: a pause follows.
		"objects are deleted": {func(t *testing.T, cluster *fakecluster.Cluster, of fakecluster.Type, _ *dynamicinformer.Lease) {
			t.Helper()
			deleteLarge(t, cluster, of, "ns", 0, 90)
		}, watchGrace + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBudget(t, func(in budgetCluster) {
				t, types, cluster := in.T, in.types, in.cluster
				for n, objects := range []int{100, 100, 5} {
					createLarge(t, cluster, types[n], "ns", 0, objects)
				}
				limit := bytesOf(t, cluster, types[0]) * 3 / 2
				f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(limit), dynamicinformer.WithPageSize(10))
				f.Start(t.Context())
				first := acquire(t, f, types[0].GVR)
				waitSynced(t, first)
				checkBudget(t, f)
				pages := len(cluster.Requests("list", types[1].GVR))
				second := acquire(t, f, types[1].GVR)
				over := waitRefused(t, second)
				if used := first.Status().CacheBytes; over.Limit != limit || over.Used != used || over.Needs < used*6/10 || over.Needs > used*11/10 {
					t.Errorf("refused with %+v, the first cache has %d bytes", over, used)
				}
				err := second.WaitForSync(briefly(t), dynamicinformer.WithFailFast())
				for _, text := range []string{"the cache would take about ", " of the memory budget of ", "are in use (OverBudget for ", "; raise WithMemoryBudget, release leases"} {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("error %q has no %q", err, text)
					}
				}
				third := acquire(t, f, types[2].GVR) // it fits
				waitSynced(t, third)
				time.Sleep(10 * time.Hour)
				if i := second.Status(); i.State != status.StateDegraded || i.Objects != 0 || i.Attempts != 1 || !i.NextRetry.IsZero() {
					t.Errorf("the second type is %s with %d objects, next attempt at %v", i.Summary(time.Now()), i.Objects, i.NextRetry)
				}
				if lists := len(cluster.Requests("list", types[1].GVR)) - pages; lists != 1 {
					t.Errorf("%d pages of the second type were requested", lists)
				}
				if b := f.MemoryBudget(); b.Waiting != 1 {
					t.Errorf("%d lists wait", b.Waiting)
				}
				checkBudget(t, f)
				begun := time.Now()
				tc.release(t, cluster, types[0], first)
				waitSynced(t, second)
				if took := time.Since(begun); took > tc.within {
					t.Errorf("the list came after %v", took)
				}
				checkBudget(t, f)
				createLarge(t, cluster, types[2], "ns", 5, 300) // a cache that grows is kept
				synctest.Wait()
				if i := third.Status(); i.State != status.StateSynced || i.Objects != 300 || f.MemoryBudget().Caches <= limit {
					t.Errorf("the third type is %s with %d objects, the budget is %+v", i.Summary(time.Now()), i.Objects, f.MemoryBudget())
				}
				checkBudget(t, f)
				for _, l := range []*dynamicinformer.Lease{first, second, third} {
					l.Release()
				}
				if b := f.MemoryBudget(); b != (status.Budget{Limit: limit}) {
					t.Errorf("without leases, the budget is %+v", b)
				}
				shutdown(t, f)
			})
		})
	}
}

// watchGrace is the time that WaitForSync waits for a watch.
const watchGrace = 100 * time.Millisecond

// The number of remaining objects of a list with a selector is not known.
func TestMemoryBudget_RefusesAListOfUnknownSizeAtThePageThatDoesNotFit(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		createLarge(t, cluster, types[0], "ns", 0, 100)
		all := bytesOf(t, cluster, types[0])
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(all/2), dynamicinformer.WithPageSize(10), dynamicinformer.WithLabelSelector("app=large"))
		f.Start(t.Context())
		before := len(cluster.Requests("list", types[0].GVR))
		l := acquire(t, f, types[0].GVR)
		over := waitRefused(t, l)
		if over.Needs <= all/2 || over.Needs > all*8/10 {
			t.Errorf("refused with %+v, all objects have %d bytes", over, all)
		}
		time.Sleep(time.Hour)
		if pages := len(cluster.Requests("list", types[0].GVR)) - before; pages < 4 || pages > 7 {
			t.Errorf("%d pages", pages)
		}
		deleteLarge(t, cluster, types[0], "ns", 0, 70)
		time.Sleep(time.Hour)
		if i := l.Status(); i.Reason != status.ReasonOverBudget { // the server is not asked
			t.Errorf("it is %s", i.Summary(time.Now()))
		}
		l.Retry()
		waitSynced(t, l)
		checkBudget(t, f)
		shutdown(t, f)
	})
}

// Two lists of unknown size that don't fit together are not refused in turn for ever.
func TestMemoryBudget_OneOfTwoListsOfUnknownSizeFits(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		for _, of := range types[:2] {
			createLarge(t, cluster, of, "ns", 0, 100)
		}
		all := bytesOf(t, cluster, types[0])
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(all*5/4), dynamicinformer.WithPageSize(5), dynamicinformer.WithLabelSelector("app=large"))
		f.Start(t.Context())
		cluster.Intercept(func(context.Context, fakecluster.Request) error {
			time.Sleep(time.Millisecond) // the lists are in progress at the same time
			return nil
		})
		leases := []*dynamicinformer.Lease{acquire(t, f, types[0].GVR), acquire(t, f, types[1].GVR)}
		time.Sleep(time.Hour)
		synced := 0
		for n, l := range leases {
			i := l.Status()
			if i.State == status.StateSynced {
				synced++
			} else if i.Reason != status.ReasonOverBudget {
				t.Errorf("%s is %s", i.Name(), i.Summary(time.Now()))
			}
			if pages := len(cluster.Requests("list", types[n].GVR)); pages > 100 {
				t.Errorf("%d pages", pages)
			}
		}
		if synced != 1 {
			t.Errorf("%d are synced", synced)
		}
		checkBudget(t, f)
		shutdown(t, f)
	})
}

func TestMemoryBudget_PacksATypeThatDoesNotFitOtherwise(t *testing.T) {
	for name, opts := range map[string][]dynamicinformer.Option{
		"a list": nil, "a list of unknown size": {dynamicinformer.WithLabelSelector("app=large")}, "namespaces": {dynamicinformer.WithNamespaces("ns", "other")},
		"a transform": {dynamicinformer.WithTransform(func(obj any) (any, error) { return obj, nil })},
	} {
		t.Run(name, func(t *testing.T) {
			inBudget(t, func(in budgetCluster) {
				t, types, cluster := in.T, in.types, in.cluster
				for _, of := range types[:3] {
					createLarge(t, cluster, of, "ns", 0, 60)
					createLarge(t, cluster, of, "other", 0, 40)
				}
				tree, small := bytesOf(t, cluster, types[0]), bytesOf(t, cluster, types[0], dynamicinformer.WithPackedCache())
				if packedCaches {
					tree = 4 * small
				}
				limit := tree + small*3/2
				f := newFactory(t, cluster, append(opts, dynamicinformer.WithMemoryBudget(limit), dynamicinformer.WithPageSize(10),
					dynamicinformer.WithBudgetPolicy(dynamicinformer.PackOverBudget))...)
				f.Start(t.Context())
				first := acquire(t, f, types[0].GVR)
				waitSynced(t, first)
				second := acquire(t, f, types[1].GVR)
				added := listen(t, second.Informer())
				waitSynced(t, second)
				if first.Status().Packed != packedCaches {
					t.Errorf("the first type is packed: %v", !packedCaches)
				}
				if !packedCaches && (!second.Status().Packed || f.MemoryBudget().Caches > limit) {
					t.Errorf("the second type is packed: %v, the budget is %+v", second.Status().Packed, f.MemoryBudget())
				}
				checkBudget(t, f)
				for n, l := range []*dynamicinformer.Lease{first, second} {
					checkLarge(t, cluster, types[n], l)
				}
				createLarge(t, cluster, types[1], "ns", 100, 101)
				deleteLarge(t, cluster, types[1], "other", 0, 1)
				synctest.Wait()
				checkLarge(t, cluster, types[1], second)
				if events := added.take(); len(events) != 102 {
					t.Errorf("%d events", len(events))
				}
				_, err := second.AddPackedHandler(cache.TypedResourceEventHandlerFuncs[*packed.Object]{}, cache.HandlerOptions{})
				if err != nil {
					t.Error(err)
				}
				_, err = first.AddPackedHandler(cache.TypedResourceEventHandlerFuncs[*packed.Object]{}, cache.HandlerOptions{})
				if option, is := errors.AsType[*dynamicinformer.OptionError](err); !packedCaches && (!is || option.Option != "AddPackedHandler") {
					t.Errorf("AddPackedHandler: %v", err)
				}
				if !packedCaches && name != "namespaces" { // one of them may fit
					_ = waitRefused(t, acquire(t, f, types[2].GVR)) // also in packed form
				}
				checkBudget(t, f)
				shutdown(t, f)
			})
		})
	}
}

// checkLarge checks that readers of l get the objects of the cluster.
func checkLarge(t *testing.T, cluster *fakecluster.Cluster, of fakecluster.Type, l *dynamicinformer.Lease) {
	t.Helper()
	want, err := cluster.Resource(of.GVR).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read := l.Unstructured()
	got, err := read.List(nil)
	if err != nil || len(got) != len(want.Items) {
		t.Fatalf("%d objects, want %d: %v", len(got), len(want.Items), err)
	}
	for i := range want.Items {
		object, err := read.Get(want.Items[i].GetNamespace() + "/" + want.Items[i].GetName())
		if err != nil || !reflect.DeepEqual(object.Object, want.Items[i].Object) {
			t.Fatalf("object %v, want %v: %v", object, want.Items[i].Object, err)
		}
	}
	named, err := read.Count(lister.Query{Where: "metadata.labels.app=large"})
	if err != nil || named != len(want.Items) {
		t.Errorf("a query selects %d objects: %v", named, err)
	}
}

// A transform gets each object once, and is not called concurrently, whatever the size of the cache.
func TestMemoryBudget_CallsTheTransformOnceForEachObject(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		var names []string
		for n := range 20 {
			names = append(names, fmt.Sprint("ns", n))
			createLarge(t, cluster, types[0], names[n], 0, 10)
		}
		var calls, now atomic.Int64
		transform := func(obj any) (any, error) {
			if calls.Add(1); now.Add(1) > 1 {
				t.Error("it is called concurrently")
			}
			time.Sleep(time.Millisecond)
			now.Add(-1)
			unstructured.RemoveNestedField(obj.(*unstructured.Unstructured).Object, "spec")
			return obj, nil
		}
		limit := bytesOf(t, cluster, types[0], dynamicinformer.WithPackedCache()) // without spec, trees fit, too
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(limit), dynamicinformer.WithTransform(transform), dynamicinformer.WithPageSize(4),
			dynamicinformer.WithNamespaces(names[:18]...))
		f.Start(t.Context())
		l := acquire(t, f, types[0].GVR)
		waitSynced(t, l)
		if got := calls.Load(); got != 180 {
			t.Errorf("%d calls for 180 objects", got)
		}
		if err := l.SetNamespaces(names...); err != nil {
			t.Fatal(err)
		}
		for i := range 10 { // events at the same time
			createLarge(t, cluster, types[0], "ns3", 10+i, 11+i)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		if i, got := l.Status(), calls.Load(); i.Objects != 210 || got != 210 {
			t.Errorf("%d calls, %d objects", got, i.Objects)
		}
		checkBudget(t, f)
		shutdown(t, f)
	})
}

// Each namespace of a set has its own list.
func TestMemoryBudget_RefusesANamespace(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		createLarge(t, cluster, types[0], "a", 0, 100)
		one := bytesOf(t, cluster, types[0])
		for _, namespace := range []string{"b", "c"} {
			createLarge(t, cluster, types[0], namespace, 0, 100)
		}
		createLarge(t, cluster, types[0], "d", 0, 5)
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(one*3/2), dynamicinformer.WithPageSize(10), dynamicinformer.WithNamespaces("a", "b"))
		f.Start(t.Context())
		before := len(cluster.Requests("list", types[0].GVR))
		l := acquire(t, f, types[0].GVR)
		waitSynced(t, l)
		checkNamespaces := func(want string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, n := range l.Status().Namespaces {
				got = append(got, fmt.Sprint(n.Name, " ", n.Listed, " ", n.Reason))
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("namespaces: %s, want %s", strings.Join(got, ", "), want)
			}
			checkBudget(t, f)
		}
		time.Sleep(time.Hour)
		refused := "b"
		if l.Status().Namespaces[1].Listed {
			refused = "a"
			checkNamespaces("a false OverBudget, b true ")
		} else {
			checkNamespaces("a true , b false OverBudget")
		}
		if pages := len(cluster.Requests("list", types[0].GVR)) - before; pages > 15 {
			t.Errorf("%d pages", pages)
		}
		listed := map[string]string{"a": "b", "b": "a"}[refused]
		set := func(names ...string) {
			t.Helper()
			if err := l.SetNamespaces(names...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		set(listed, "c", "d") // d fits, beside c
		checkNamespaces(listed + " true , c false OverBudget, d true ")
		set("c", "d")
		checkNamespaces("c true , d true ")
		set("a", "b")
		set("c")
		checkNamespaces("c true ")
		set()
		checkNamespaces("")
		if b := f.MemoryBudget(); b.Caches > 4<<10 && !packedCaches || b.Waiting != 0 {
			t.Errorf("without namespaces, the budget is %+v", b)
		}
		shutdown(t, f)
	})
}

// If no namespace of a set fits, the informer is not synced, and sends no requests until one does.
func TestMemoryBudget_RefusesAllNamespaces(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		for _, of := range types[:2] {
			for _, namespace := range []string{"a", "b"} {
				createLarge(t, cluster, of, namespace, 0, 50)
			}
		}
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(bytesOf(t, cluster, types[0])*13/10), dynamicinformer.WithPageSize(10))
		f.Start(t.Context())
		first := acquire(t, f, types[0].GVR)
		waitSynced(t, first)
		l := acquire(t, f, types[1].GVR, dynamicinformer.WithNamespaces("a", "b"))
		_ = waitRefused(t, l)
		time.Sleep(time.Hour)
		if lists := cluster.Requests("list", types[1].GVR); len(lists) != 2 {
			t.Errorf("%d pages", len(lists))
		}
		first.Release()
		waitSynced(t, l)
		time.Sleep(time.Minute)
		if i := l.Status(); i.Objects != 100 {
			t.Errorf("%d objects: %s", i.Objects, i.Summary(time.Now()))
		}
		checkBudget(t, f)
		l.Release()
		if b := f.MemoryBudget(); b.Caches != 0 || b.Lists != 0 || b.Waiting != 0 {
			t.Errorf("without leases, the budget is %+v", b)
		}
		shutdown(t, f)
	})
}

// A type that is gone frees its room, and is refused like any other when it comes back.
func TestMemoryBudget_TypesThatComeAndGo(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		for _, of := range types[:2] {
			createLarge(t, cluster, of, "ns", 0, 100)
		}
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(bytesOf(t, cluster, types[0])*3/2), dynamicinformer.WithPageSize(10), withDiscovery(t, cluster))
		f.Start(t.Context())
		first := acquire(t, f, types[0].GVR)
		waitSynced(t, first)
		second := acquire(t, f, types[1].GVR)
		_ = waitRefused(t, second)
		cluster.Withdraw(types[0].GVR)
		waitSynced(t, second)
		if i := first.Status(); i.State != status.StateNotServed || i.CacheBytes > 8<<10 {
			t.Errorf("the first type is %s with %d bytes", i.Summary(time.Now()), i.CacheBytes)
		}
		checkBudget(t, f)
		cluster.Serve(types[0])
		createLarge(t, cluster, types[0], "ns", 0, 100)
		time.Sleep(time.Hour)
		if i := first.Status(); i.Reason != status.ReasonOverBudget || i.Objects != 0 {
			t.Errorf("the first type is %s with %d objects", i.Summary(time.Now()), i.Objects)
		}
		checkBudget(t, f)
		cluster.Withdraw(types[0].GVR) // while it is refused
		time.Sleep(time.Hour)
		if b := f.MemoryBudget(); b.Waiting != 0 {
			t.Errorf("the budget is %+v", b)
		}
		cluster.Serve(types[0])
		createLarge(t, cluster, types[0], "ns", 0, 5) // it is smaller now
		waitSynced(t, first)
		checkBudget(t, f)
		shutdown(t, f)
	})
}

// Objects that do not exist have nothing in common.
func TestMemoryBudget_ATypeThatIsNotServedTakesNothing(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		cluster.Withdraw(types[0].GVR)
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(1<<20), dynamicinformer.WithPackedCache(), withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, types[0].GVR, dynamicinformer.WithAllowAbsent())
		time.Sleep(time.Minute)
		if i := l.Status(); i.State != status.StateNotServed || i.CacheBytes != 0 {
			t.Errorf("it is %s with %d bytes", i.Summary(time.Now()), i.CacheBytes)
		}
		checkBudget(t, f)
		cluster.Serve(types[0])
		createLarge(t, cluster, types[0], "ns", 0, 5)
		waitSynced(t, l)
		checkBudget(t, f)
		shutdown(t, f)
	})
}

// Typed and metadata caches count in their forms.
func TestMemoryBudget_Forms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		createLarge(t, cluster, widgetType, "ns", 0, 100)
		all := bytesOf(t, cluster, widgetType)
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(all/2), dynamicinformer.WithPageSize(10), dynamicinformer.WithMetadataClient(newMetadataClient(t)),
			dynamicinformer.WithBudgetPolicy(dynamicinformer.PackOverBudget))
		f.Start(t.Context())
		typed, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets)
		if err != nil {
			t.Fatal(err)
		}
		waitSynced(t, typed.Lease) // without the fields that the Go type does not have
		metadata := acquire(t, f, widgets, dynamicinformer.WithMetadataOnly())
		waitSynced(t, metadata)
		if typed.Status().Packed || metadata.Status().Packed {
			t.Error("they are packed")
		}
		checkBudget(t, f)
		typed.Release()
		metadata.Release()
		checkBudget(t, f)
		shutdown(t, f)
	})
}

// A handler that does not return does not keep the room of a lease that was released.
func TestMemoryBudget_AStuckHandlerKeepsNoRoom(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		createLarge(t, cluster, types[0], "ns", 0, 10)
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(1<<20))
		f.Start(t.Context())
		l, stuck := acquire(t, f, types[0].GVR), make(chan struct{})
		if _, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-stuck }}); err != nil {
			t.Fatal(err)
		}
		waitSynced(t, l)
		checkBudget(t, f)
		l.Release()
		if b := f.MemoryBudget(); b.Caches != 0 {
			t.Errorf("the budget is %+v", b)
		}
		close(stuck)
		shutdown(t, f)
	})
}
