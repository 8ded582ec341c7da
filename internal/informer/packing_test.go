package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	internalpacked "github.com/gvrkit/gvrkit/internal/packed"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/packed"
)

func newPacked(t *testing.T) *Informer {
	t.Helper()
	return New(Config{
		Source: source.Config{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}},
		Packer: packed.NewPacker(), Indexers: cache.Indexers{"color": func(obj any) ([]string, error) {
			color, _, err := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "color")
			return []string{color}, err
		}},
	})
}

func widget(name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "namespace": "ns"},
		"spec": map[string]any{"color": color},
	}}
}

// A program may write to the store, as it may with client-go's.
func TestPackedStore_WritesArePacked(t *testing.T) {
	i := newPacked(t)
	store := i.GetStore()
	odd := struct{ name string }{"odd"}
	for _, err := range []error{store.Add(widget("a", "red")), store.Update(widget("b", "red")), store.Update(widget("a", "blue"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if store.Add(odd) == nil {
		t.Error("an object without a key is accepted")
	}
	for _, stored := range i.SharedIndexInformer.GetStore().List() {
		if _, is := stored.(*packed.Object); !is {
			t.Errorf("the store has a %T", stored)
		}
	}
	found, err := i.GetIndexer().ByIndex("color", "blue")
	if diff := cmp.Diff([]any{widget("a", "blue")}, found); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if err := store.Replace([]any{widget("c", "green")}, "7"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{widget("c", "green")}, store.List()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, is := i.SharedIndexInformer.GetStore().List()[0].(*packed.Object); !is {
		t.Error("Replace has not packed the objects")
	}
	if item, exists, err := store.GetByKey("ns/none"); item != nil || exists || err != nil {
		t.Errorf("%v, %v, %v", item, exists, err)
	}
}

// client-go's store computes the values of the old object for each update, and again for each deletion.
func TestPackedStore_IndexFunctionsAreCalledOnceForEachObject(t *testing.T) {
	i, unpacked := newPacked(t), 0
	internalpacked.Observe(i.packing.packer, func(any) { unpacked++ })
	var sizes []string
	failing := false
	if err := i.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "size": func(obj any) ([]string, error) {
		if sizes = append(sizes, obj.(*unstructured.Unstructured).GetName()); failing {
			return nil, errors.New("no size")
		}
		return []string{"small", "medium"}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	store := i.GetIndexer()
	for _, err := range []error{store.Add(widget("a", "red")), store.Update(widget("a", "blue")), store.Add(widget("b", "blue")), store.Delete(widget("b", ""))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if unpacked < 3 || unpacked > 6 || len(sizes) != 3 { // 3 objects, 2 functions
		t.Errorf("%d times an object is unpacked, and size is called for %q", unpacked, sizes)
	}
	unpacked = 0
	for name, values := range map[string]string{"color": "blue", "size": "medium", cache.NamespaceIndex: "ns"} {
		if keys, err := store.IndexKeys(name, values); err != nil || len(keys) != 1 || keys[0] != "ns/a" {
			t.Errorf("%s: %q, error %v", name, keys, err)
		}
	}
	if keys, err := store.IndexKeys("color", "red"); err != nil || len(keys) != 0 {
		t.Errorf("%q, error %v", keys, err)
	}
	if unpacked != 0 {
		t.Errorf("%d objects are unpacked for keys", unpacked)
	}
	sizes, failing = nil, true
	function := i.packing.index(i.unguarded["size"])
	packed := i.packing.Pack(widget("c", "red"))
	for range 2 {
		if values, err := function(packed); err == nil || values != nil || len(sizes) == 0 {
			t.Errorf("%q, error %v", values, err)
		}
	}
	if failing = false; len(sizes) != 2 {
		t.Errorf("after an error, the function is not called again: %q", sizes)
	}
	if values, err := function(packed); err != nil || len(values) != 2 {
		t.Errorf("%q, error %v", values, err)
	}
}

// A program may replace client-go's function of namespaces.
func TestPackedStore_AllOtherIndexFunctionsGetUnstructuredObjects(t *testing.T) {
	i := newPacked(t)
	if err := i.AddIndexers(cache.Indexers{cache.NamespaceIndex: func(obj any) ([]string, error) {
		return []string{obj.(*unstructured.Unstructured).GetNamespace() + "-own"}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	store := i.GetIndexer()
	if err := store.Add(widget("a", "red")); err != nil {
		t.Fatal(err)
	}
	if keys, err := store.IndexKeys(cache.NamespaceIndex, "ns-own"); err != nil || len(keys) != 1 {
		t.Errorf("%q, error %v", keys, err)
	}
}

// client-go's function of the namespace index reads packed objects: it needs no trees.
func TestPackedStore_TheIndexOfNamespacesUnpacksNothing(t *testing.T) {
	packer := packed.NewPacker()
	i := New(Config{Packer: packer, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}})
	unpacked := 0
	internalpacked.Observe(packer, func(any) { unpacked++ })
	if err := errors.Join(i.GetStore().Add(widget("a", "red")), i.GetStore().Update(widget("a", "blue"))); err != nil {
		t.Fatal(err)
	}
	if keys, err := i.GetIndexer().IndexKeys(cache.NamespaceIndex, "ns"); err != nil || len(keys) != 1 || unpacked > 0 {
		t.Errorf("keys %q, error %v, %d objects have been unpacked", keys, err, unpacked)
	}
	if i.GetStore().List(); unpacked != 1 {
		t.Errorf("%d objects have been unpacked by a list of one", unpacked)
	}
}

// An informer may end while its packer is renewed: its objects stay valid.
func TestPacking_EndsDuringARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacking(packed.NewPacker(), nil, schema.GroupVersionResource{})
		var live []any
		for n := range checkAfter {
			live = append(live, p.Pack(widget(fmt.Sprint(n), fmt.Sprintf("color-%d", n/4))))
		}
		live = live[:100]
		p.synced = func() bool { return true }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		calls := 0
		p.stored = func() []any {
			if calls++; calls == 3 { // the objects are packed again
				cancel()
			}
			return live
		}
		stop := p.run(ctx)
		<-ctx.Done()
		stop()
		if calls < 3 {
			t.Errorf("%d calls", calls)
		}
		for n, object := range live {
			if diff := cmp.Diff(widget(fmt.Sprint(n), fmt.Sprintf("color-%d", n/4)), p.unpacked(object)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}

// A cache of 100 objects does not grow with their updates.
func TestPackedStore_StaysSmallAfter100000Updates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newPacked(t)
		i.packing.synced = func() bool { return true }
		stop := i.packing.run(t.Context())
		store := i.GetStore()
		heap := func() int64 {
			synctest.Wait()
			runtime.GC()
			runtime.GC() // weak pointers
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			return int64(now.HeapAlloc) //nolint:gosec // bytes
		}
		var early int64
		for n := range 100_000 {
			if n == 20_000 {
				early = heap()
			}
			obj := widget(fmt.Sprint(n%100), fmt.Sprintf("color-%d", n/4))
			if err := store.Update(obj); err != nil {
				t.Fatal(err)
			}
			if n%50 == 0 {
				if got, there, err := store.GetByKey(fmt.Sprintf("ns/%d", n%100)); err != nil || !there || !reflect.DeepEqual(got, obj) {
					t.Fatalf("%v, error %v", got, err)
				}
			}
			if n%checkAfter == 0 {
				synctest.Wait() // for a renewal
			}
		}
		if grown := heap() - early; grown > 1<<20 { // 100,000 trees take 100 MB, a dictionary of all colors 4 MB
			t.Errorf("the heap has grown by %d bytes", grown)
		}
		runtime.KeepAlive(store)
		stop()
	})
}

// Otherwise the dictionary of a cache with years of changes would have more dead entries than live ones.
func TestPacking_RenewsTheDictionary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacking(packed.NewPacker(), nil, schema.GroupVersionResource{})
		var live []any
		p.stored, p.synced = func() []any { return live }, func() bool { return true }
		most := 0
		stop := p.run(t.Context())
		for generation := range 8 {
			live = nil
			for n := range checkAfter {
				obj := widget(fmt.Sprint(n), fmt.Sprintf("color-%d-of-generation-%d", n/4, generation))
				if packed := p.Pack(obj); n < 100 {
					live = append(live, packed)
				}
			}
			most = max(most, p.packer.Size())
			synctest.Wait()
		}
		stop()
		if most > 512<<10 { // more than 1 MB without
			t.Errorf("the dictionary has had %d bytes", most)
		}
		for n, object := range live {
			if diff := cmp.Diff(widget(fmt.Sprint(n), fmt.Sprintf("color-%d-of-generation-7", n/4)), object.(*packed.Object).Unstructured()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		}
	})
}

// During the first list, its objects are not in the cache yet.
func TestPacking_KeepsTheDictionaryDuringTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacking(packed.NewPacker(), nil, schema.GroupVersionResource{})
		p.stored, p.synced = func() []any { return nil }, func() bool { return false }
		stop := p.run(t.Context())
		size := 0
		for n := range 3 * checkAfter {
			p.Pack(widget(fmt.Sprint(n), fmt.Sprintf("color-%d-of-the-first-list", n/4)))
			if n%checkAfter == 0 {
				synctest.Wait()
				if p.packer.Size() < size {
					t.Errorf("after %d objects, the dictionary has %d bytes, before %d", n, p.packer.Size(), size)
				}
			}
			size = p.packer.Size()
		}
		stop()
	})
}

// An object that was packed before a renewal and stored after it has the old dictionary: the next check packs it again.
func TestPacking_PacksLateObjectsAgainAtTheNextCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacking(packed.NewPacker(), nil, schema.GroupVersionResource{})
		var live []any
		var resized []string
		p.stored, p.synced = func() []any { return live }, func() bool { return true }
		p.resize = func(key string, _ metav1.Object) { resized = append(resized, key) }
		stop := p.run(t.Context())
		defer stop()
		late := p.Pack(widget("late", "red"))
		for n := 1; n < checkAfter; n++ { // most of it is not in use
			p.Pack(widget(fmt.Sprint(n), fmt.Sprintf("a-color-with-a-name-that-is-long-enough-%d", n/3)))
		}
		synctest.Wait()
		live = []any{late}
		for n := range checkAfter - 1 { // the cache is small, but no check is due without the renewal
			p.Pack(widget(fmt.Sprint(n), "blue"))
		}
		live = append(live, make([]any, 2*checkAfter)...)
		p.Pack(widget("last", "blue"))
		synctest.Wait()
		if len(resized) != 1 || resized[0] != "ns/late" {
			t.Errorf("%q are packed again", resized)
		}
	})
}
