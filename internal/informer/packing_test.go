package informer

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

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

// Otherwise the dictionary of a cache with years of changes would have more dead entries than live ones.
func TestPacking_RenewsTheDictionary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacking(packed.NewPacker(), schema.GroupVersionResource{})
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
		p := newPacking(packed.NewPacker(), schema.GroupVersionResource{})
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
