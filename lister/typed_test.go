package lister_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/lister"
)

// block is a Go type of the objects in these tests.
type block struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec blockSpec `json:"spec"`
}

type blockSpec struct {
	Allocations []*int `json:"allocations"`
	Sequence    int64  `json:"sequence,omitempty"`
	Tier        string `json:"tier,omitempty"`
}

func (b *block) DeepCopyObject() kruntime.Object {
	copied := *b
	b.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// newBlock returns a block with the spec in JSON.
func newBlock(t *testing.T, namespace, name, version, spec string) *unstructured.Unstructured {
	t.Helper()
	object := newObject(namespace, name, map[string]string{"app": name})
	object.SetResourceVersion(version)
	object.SetUID(types.UID("uid-" + name))
	var content map[string]any
	if err := utiljson.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = content
	return object
}

// newBlocks returns a cache with n blocks in namespace ns.
func newBlocks(t *testing.T, n int) cache.Indexer {
	t.Helper()
	indexer := newIndexer(t)
	for i := range n {
		update(t, indexer, newBlock(t, "ns", fmt.Sprintf("b%d", i), "1", fmt.Sprintf(`{"sequence":%d}`, i)))
	}
	return indexer
}

func update(t *testing.T, indexer cache.Indexer, object any) {
	t.Helper()
	if err := indexer.Update(object); err != nil {
		t.Fatal(err)
	}
}

// get returns the block under key.
func get(t *testing.T, typed *lister.Typed[*block], key string) *block {
	t.Helper()
	found, err := typed.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTyped_ReadsObjectsAsT(t *testing.T) {
	indexer := newIndexer(t, newBlock(t, "ns", "a", "1", `{"tier":"gold"}`), newBlock(t, "other", "b", "2", `{"tier":"silver"}`))
	typed := lister.NewTyped[*block](indexer, widgets)
	for name, read := range map[string]func() ([]*block, error){
		"List":                 func() ([]*block, error) { return typed.List(parseSelector(t, "app=a")) },
		"List in a namespace":  func() ([]*block, error) { return typed.Namespace("ns").List(nil) },
		"ByIndex":              func() ([]*block, error) { return typed.ByIndex(cache.NamespaceIndex, "ns") },
		"Get":                  func() ([]*block, error) { got, err := typed.Get("ns/a"); return []*block{got}, err },
		"Get in the namespace": func() ([]*block, error) { got, err := typed.Namespace("ns").Get("a"); return []*block{got}, err },
	} {
		got, err := read()
		if err != nil || len(got) != 1 || got[0].Name != "a" || got[0].Spec.Tier != "gold" || got[0].Kind != "Widget" {
			t.Errorf("%s = %+v, %v", name, got, err)
		}
	}
	if got, err := typed.List(nil); len(got) != 2 || err != nil {
		t.Errorf("List(nil) = %v, %v", keys(got), err)
	}
	if got, err := typed.Namespace("").List(labels.Everything()); len(got) != 2 || err != nil {
		t.Errorf("List in no namespace = %v, %v", keys(got), err)
	}
}

// CASES 60: one object of 1,000 has a field of the wrong type.
func TestTyped_ListReturnsTheObjectsThatFitAndNamesTheOthers(t *testing.T) {
	indexer := newBlocks(t, 999)
	update(t, indexer, newBlock(t, "ns", "bad", "7", `{"sequence":"secret"}`))
	typed := lister.NewTyped[*block](indexer, widgets)
	for range 2 { // the second time from memory
		got, err := typed.List(labels.Everything())
		if len(got) != 999 {
			t.Errorf("%d objects", len(got))
		}
		wrong, is := errors.AsType[*lister.ConversionError](err)
		if !is || wrong.Name != "ns/bad" || wrong.GVR != widgets || !errors.Is(err, lister.ErrConversion) {
			t.Fatalf("error %v", err)
		}
		const text = `widgets.example.com "ns/bad": json: cannot unmarshal string into Go struct field`
		if !strings.HasPrefix(err.Error(), text) || !strings.Contains(err.Error(), "sequence") || strings.Contains(err.Error(), "secret") {
			t.Errorf("text: %v", err)
		}
	}
	if got, err := typed.Get("ns/bad"); got != nil || !errors.Is(err, lister.ErrConversion) {
		t.Errorf("Get = %v, %v", got, err)
	}
	update(t, indexer, newBlock(t, "ns", "bad", "8", `{"sequence":1}`))
	if got, err := typed.List(nil); len(got) != 1000 || err != nil {
		t.Errorf("after the object was corrected: %d objects, %v", len(got), err)
	}
}

func TestTyped_ErrorsAreSortedByName(t *testing.T) {
	indexer := newIndexer(t)
	var want []string
	for i := range 9 {
		name := fmt.Sprint("b", i)
		update(t, indexer, newBlock(t, "ns", name, "1", `{"sequence":0.5}`))
		want = append(want, "ns/"+name)
	}
	_, err := lister.NewTyped[*block](indexer, widgets).List(nil)
	var got []string
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		if of, is := errors.AsType[*lister.ConversionError](one); is {
			got = append(got, of.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// CASES 61: nulls in a list of pointers.
func TestTyped_KeepsNulls(t *testing.T) {
	indexer := newIndexer(t, newBlock(t, "ns", "a", "1", `{"allocations":[null,0,null,1]}`))
	back, err := json.Marshal(get(t, lister.NewTyped[*block](indexer, widgets), "ns/a").Spec.Allocations)
	if err != nil || string(back) != "[null,0,null,1]" {
		t.Errorf("allocations %s, %v", back, err)
	}
}

// CASES 62: integers beyond 2^53 are exact, and integers beyond int64 are errors of that object.
func TestTyped_IntegersAreExact(t *testing.T) {
	indexer := newIndexer(t,
		newBlock(t, "ns", "a", "1", `{"sequence":9007199254740993}`),
		newBlock(t, "ns", "b", "1", `{"sequence":9223372036854775807}`),
		newBlock(t, "ns", "c", "1", `{"sequence":9223372036854775808}`))
	typed := lister.NewTyped[*block](indexer, widgets)
	if a, b := get(t, typed, "ns/a"), get(t, typed, "ns/b"); a.Spec.Sequence != 9007199254740993 || b.Spec.Sequence != 9223372036854775807 {
		t.Errorf("%d and %d", a.Spec.Sequence, b.Spec.Sequence)
	}
	got, err := typed.List(nil)
	if len(got) != 2 || !errors.Is(err, lister.ErrConversion) || !strings.Contains(err.Error(), "ns/c") {
		t.Errorf("%v, %v", keys(got), err)
	}
}

// An object of the cache is converted once.
func TestTyped_KeepsTheConversionOfAnObject(t *testing.T) {
	object := newBlock(t, "ns", "a", "1", `{"sequence":1}`)
	indexer := newIndexer(t, object)
	typed := lister.NewTyped[*block](indexer, widgets)
	first := get(t, typed, "ns/a")
	update(t, indexer, object)
	listed, err := typed.List(nil)
	if err != nil || len(listed) != 1 || listed[0] != first {
		t.Errorf("the same object was converted again: %v", err)
	}
}

// Another object in its place is converted, also if UID and version are the same: a server may send no versions, or always the same one,
// and one whose etcd was restored sends earlier versions again, with other content.
func TestTyped_ConvertsEachObject(t *testing.T) {
	for name, change := range map[string]func(*unstructured.Unstructured){
		"another version":     func(o *unstructured.Unstructured) { o.SetResourceVersion("2") },
		"another UID":         func(o *unstructured.Unstructured) { o.SetUID("again") },
		"another API version": func(o *unstructured.Unstructured) { o.SetAPIVersion("example.com/v2") },
		"no version":          func(o *unstructured.Unstructured) { o.SetResourceVersion("") },
		"the same version":    func(*unstructured.Unstructured) {},
	} {
		object := newBlock(t, "ns", "a", "1", `{"sequence":1}`)
		indexer := newIndexer(t, object)
		typed := lister.NewTyped[*block](indexer, widgets)
		before := get(t, typed, "ns/a")
		for sequence := range int64(3) {
			changed := object.DeepCopy()
			changed.Object["spec"] = map[string]any{"sequence": sequence}
			change(changed)
			update(t, indexer, changed)
			if after := get(t, typed, "ns/a"); after == before || after.Spec.Sequence != sequence {
				t.Errorf("%s: sequence %d, want %d", name, after.Spec.Sequence, sequence)
			}
		}
	}
}

// A conversion does not keep the cached object in memory when another one is in its place.
func TestTyped_KeepsNoEarlierObjects(t *testing.T) {
	indexer := newIndexer(t, newBlock(t, "ns", "a", "1", `{"sequence":1}`))
	typed := lister.NewTyped[*block](indexer, widgets)
	get(t, typed, "ns/a")
	earlier := func() weak.Pointer[unstructured.Unstructured] {
		cached, _, _ := indexer.GetByKey("ns/a")
		return weak.Make(cached.(*unstructured.Unstructured))
	}()
	update(t, indexer, newBlock(t, "ns", "a", "2", `{"sequence":2}`))
	runtime.GC()
	if earlier.Value() != nil {
		t.Error("the earlier object is still in memory")
	}
	runtime.KeepAlive(typed)
}

// The conversion of a deleted object is dropped by later reads of any kind.
func TestTyped_DropsTheConversionsOfDeletedObjects(t *testing.T) {
	const objects = 500
	for name, read := range map[string]func(*lister.Typed[*block]) error{
		"a list of all": func(typed *lister.Typed[*block]) error { _, err := typed.List(nil); return err },
		"a list of all namespaces": func(typed *lister.Typed[*block]) error {
			_, err := typed.Namespace("").List(nil)
			return err
		},
		"a Get of it": func(typed *lister.Typed[*block]) error {
			if _, err := typed.Get("ns/b7"); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is still there: %w", err)
			}
			return nil
		},
		"many Gets of others": func(typed *lister.Typed[*block]) error {
			for range 10 * objects {
				if _, err := typed.Get("ns/b1"); err != nil {
					return err
				}
			}
			return nil
		},
		"many lists by index": func(typed *lister.Typed[*block]) error {
			for range 10 * objects {
				if _, err := typed.ByIndex("app", "b1"); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		indexer := newBlocks(t, objects)
		if err := indexer.AddIndexers(cache.Indexers{"app": func(object any) ([]string, error) {
			return []string{object.(*unstructured.Unstructured).GetName()}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		typed := lister.NewTyped[*block](indexer, widgets)
		if _, err := typed.List(nil); err != nil {
			t.Fatal(err)
		}
		gone, kept := weak.Make(get(t, typed, "ns/b7")), weak.Make(get(t, typed, "ns/b1"))
		if err := indexer.Delete(newObject("ns", "b7", nil)); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		if gone.Value() == nil {
			t.Errorf("%s: the conversion was not kept", name)
		}
		if err := read(typed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.GC()
		if gone.Value() != nil {
			t.Errorf("%s: the conversion is still in memory", name)
		}
		if kept.Value() == nil {
			t.Errorf("%s: the conversion of another object is gone", name)
		}
		runtime.KeepAlive(typed)
	}
}

// An object of another type has no conversion.
func TestTyped_DropsTheConversionsOfDeletedObjectsBesideObjectsOfOtherTypes(t *testing.T) {
	indexer := newBlocks(t, 10)
	typed := lister.NewTyped[*block](indexer, widgets)
	gone := weak.Make(get(t, typed, "ns/b7"))
	if _, err := typed.List(nil); err != nil {
		t.Fatal(err)
	}
	if err := indexer.Delete(newObject("ns", "b7", nil)); err != nil {
		t.Fatal(err)
	}
	if err := indexer.Add(metadataOnly()); err != nil {
		t.Fatal(err)
	}
	if _, err := typed.List(nil); err == nil {
		t.Error("no error")
	}
	runtime.GC()
	if gone.Value() != nil {
		t.Error("the conversion is still in memory")
	}
	runtime.KeepAlive(typed)
}

// Names that come and go, as those of Jobs, do not fill the memory although no List follows.
func TestTyped_KeepsAsManyConversionsAsObjects(t *testing.T) {
	indexer := newIndexer(t)
	typed := lister.NewTyped[*block](indexer, widgets)
	var all []weak.Pointer[block]
	for i := range 2000 {
		object := newBlock(t, "ns", fmt.Sprint("b", i), "1", `{}`)
		update(t, indexer, object)
		all = append(all, weak.Make(get(t, typed, fmt.Sprint("ns/b", i))))
		if err := indexer.Delete(object); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	kept := 0
	for _, one := range all {
		if one.Value() != nil {
			kept++
		}
	}
	if kept > 100 {
		t.Errorf("%d conversions of an empty cache", kept)
	}
	runtime.KeepAlive(typed)
}

func TestTyped_ReportsWhatItCanNotRead(t *testing.T) {
	other := newIndexer(t, newBlock(t, "ns", "a", "1", `{}`), metadataOnly())
	typed := lister.NewTyped[*block](other, widgets)
	if got, err := typed.List(nil); len(got) != 1 {
		t.Errorf("objects of another type: %v", keys(got))
	} else {
		checkNamesBoth(t, "List", err)
	}
	_, err := typed.Get("ns/b")
	checkNamesBoth(t, "Get", err)

	if _, err := typed.Get("ns/c"); !apierrors.IsNotFound(err) || err.Error() != `widgets.example.com "ns/c" not found` {
		t.Errorf("a missing object: %v", err)
	}
	if _, err := typed.Namespace("ns").Get("c"); !apierrors.IsNotFound(err) || err.Error() != `widgets.example.com "c" not found` {
		t.Errorf("a missing object in the namespace: %v", err)
	}
	if got, err := typed.Namespace("").Get("a"); got != nil || err == nil {
		t.Errorf("Get in no namespace: %v, %v", got, err)
	}
	if _, err := typed.ByIndex("colour", "red"); err == nil || !strings.Contains(err.Error(), "widgets.example.com") || !strings.Contains(err.Error(), "colour") {
		t.Errorf("an index that is not there: %v", err)
	}
	for name, reads := range map[string][]error{
		"no indexer":          errorsOf(lister.NewTyped[*block](nil, widgets)),
		"a struct":            errorsOf(lister.NewTyped[blockValue](other, widgets)),
		"unstructured itself": errorsOf(lister.NewTyped[*unstructured.Unstructured](other, widgets)),
	} {
		for n, err := range reads {
			if err == nil || !strings.Contains(err.Error(), "widgets.example.com") {
				t.Errorf("%s: error of read %d: %v", name, n, err)
			}
		}
	}
}

// blockValue is an object, and not a pointer.
type blockValue struct{ *block }

// errorsOf returns the errors of all reads of typed.
func errorsOf[T lister.Object](typed *lister.Typed[T]) []error {
	_, list := typed.List(nil)
	_, inNamespace := typed.Namespace("ns").List(nil)
	_, get := typed.Get("ns/a")
	_, index := typed.ByIndex(cache.NamespaceIndex, "ns")
	return []error{list, inNamespace, get, index}
}

func TestTyped_ReadersAndTheInformerRunTogether(t *testing.T) {
	indexer := newBlocks(t, 10)
	typed := lister.NewTyped[*block](indexer, widgets)
	var all sync.WaitGroup
	all.Go(func() {
		for i := range 200 {
			object := newBlock(t, "ns", fmt.Sprint("b", i%10), fmt.Sprint(i), fmt.Sprintf(`{"sequence":%d}`, i))
			if i%3 == 0 {
				_ = indexer.Delete(object)
				continue
			}
			_ = indexer.Update(object)
		}
	})
	for range 2 {
		all.Go(func() {
			for i := range 200 {
				if _, err := typed.List(nil); err != nil {
					t.Error(err)
				}
				if _, err := typed.Get(fmt.Sprint("ns/b", i%10)); err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
