package objectsize_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/objectsize"
)

// heap returns the bytes of the objects in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // it is small
}

// block returns an object with many small maps. Common is a part that objects may share.
func block(i int, common any) *unstructured.Unstructured {
	attributes := make([]any, 30)
	for n := range attributes {
		attributes[n] = map[string]any{"handle": fmt.Sprintf("handle-%d-%d", i, n), "node": fmt.Sprintf("node-%d", i), "index": int64(1000 + n)}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": fmt.Sprintf("block-%06d", i), "uid": fmt.Sprintf("%036d", i)},
		"spec":     map[string]any{"attributes": attributes, "common": common, "weight": 1.5 + float64(i)},
	}}
}

func largeCommon() any {
	list := make([]any, 200)
	for n := range list {
		list[n] = map[string]any{"name": fmt.Sprintf("a name that is %d", n)}
	}
	return list
}

func partial(i int) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.Name, m.UID = fmt.Sprintf("object-%06d", i), types.UID(fmt.Sprintf("%036d", i))
	m.Annotations = map[string]string{"a": fmt.Sprintf("a long annotation of object %d", i)}
	now := metav1.Now()
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fmt.Sprintf("manager-%06d", i), Time: &now, FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 100+i%100))}}
	return m
}

func TestSample_ObjectsTakeTheirMemory(t *testing.T) {
	const number = 2000
	common := largeCommon()
	for name, newObject := range map[string]func(i int) any{
		"trees":         func(i int) any { return block(i, nil) },
		"shared parts":  func(i int) any { return block(i, common) },
		"copied parts":  func(i int) any { return block(i, largeCommon()) },
		"metadata":      func(i int) any { return partial(i) },
		"large strings": func(i int) any { return block(i, string(make([]byte, 1+i*7919%50_000))) },
	} {
		t.Run(name, func(t *testing.T) {
			all := make([]any, number)
			before := heap()
			for i := range all {
				all[i] = newObject(i)
			}
			took := heap() - before
			var sample objectsize.Sample
			estimated := 0
			for i, object := range all {
				size := objectsize.Of(object)
				estimated += size
				if i%32 == 0 {
					sample.Add(object, size)
				}
			}
			got := float64(estimated) * sample.Result().Ratio(number)
			if ratio := got / float64(took); ratio < .9 || ratio > 1.1 {
				t.Errorf("estimated %.0f bytes, the heap grew by %d: %.2f", got, took, ratio)
			}
			runtime.KeepAlive(all)
		})
	}
}

// Of visits some members of a map, and not the same ones each time. If all objects are in the sample, that has no effect.
func TestSample_CorrectsTheEstimatesThatItGets(t *testing.T) {
	sizes := map[int]bool{}
	for range 20 {
		var sample objectsize.Sample
		estimated := 0
		for i := range 5 {
			members := map[string]any{}
			for n := range 10 {
				members[fmt.Sprint("m", n)] = strings.Repeat("x", 10+1000*(n%2))
			}
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": map[string]any{"b": members}}, "n": int64(1000 + i)}}
			size := objectsize.Of(object)
			estimated += size
			sample.Add(object, size)
		}
		sizes[int(float64(estimated)*sample.Result().Ratio(5)+.5)] = true
	}
	if len(sizes) != 1 {
		t.Errorf("sizes of equal caches: %v", slices.Sorted(maps.Keys(sizes)))
	}
}

// loop is an object that a transform might return.
type loop struct {
	metav1.ObjectMeta

	Next *loop
	Any  []any
	Fn   func()
	Ch   chan int

	hidden map[string]string // a lock may guard it
}

func TestOf_AnyValue(t *testing.T) {
	circle := &loop{Fn: func() {}, Ch: make(chan int)}
	circle.Next = circle
	for range 9 {
		circle.Any = append(circle.Any, circle, 1, "text", [3]*loop{circle}, struct{ a any }{circle}, map[any]any{1: circle})
	}
	var nothing *unstructured.Unstructured
	for _, object := range []any{nil, nothing, (*loop)(nil), circle, &loop{hidden: map[string]string{"a": "b"}}, 7, "text", map[string]any{"a": circle}, &unstructured.Unstructured{}} {
		size := objectsize.Of(object)
		var sample objectsize.Sample
		sample.Add(object, objectsize.Of(object))
		if ratio := sample.Result().Ratio(1); size < 0 || !(ratio >= 0) {
			t.Errorf("%T: %d bytes, ratio %v", object, size, ratio)
		}
	}
}

func BenchmarkOf(b *testing.B) {
	object := block(1, nil)
	b.Run("estimate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			objectsize.Of(object)
		}
	})
	b.Run("reflected", func(b *testing.B) {
		metadata := reflectedOf(partial(1))
		b.ReportAllocs()
		for b.Loop() {
			objectsize.Of(metadata)
		}
	})
	b.Run("sample", func(b *testing.B) {
		for b.Loop() {
			var s objectsize.Sample
			s.Add(object, objectsize.Of(object))
		}
	})
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			object.DeepCopy()
		}
	})
}

// reflected is metadata whose size is not known without reflection.
type reflected struct {
	metav1.TypeMeta

	Meta metadata
}

type metadata metav1.ObjectMeta

func reflectedOf(o *metav1.PartialObjectMetadata) *reflected {
	return &reflected{o.TypeMeta, metadata(o.ObjectMeta)}
}

// ofMaps has maps of several types with the same content.
type ofMaps struct {
	Texts map[string]string
	Set   labels.Set
	Names map[types.UID]string
	Any   map[string]any
	Sizes map[string]int
}

// The walk goes through each object of a list, so that garbage would be that of the whole list.
func TestOf_AllocatesNothingForEachMember(t *testing.T) {
	object := &ofMaps{Texts: map[string]string{}, Set: labels.Set{}, Names: map[types.UID]string{}, Any: map[string]any{}, Sizes: map[string]int{}}
	before := testing.AllocsPerRun(10, func() { objectsize.Of(object) })
	sizes := map[string]int{}
	for i := range 16 {
		key, value := fmt.Sprintf("a key %02d", i), fmt.Sprintf("a value of some length %02d", i)
		object.Texts[key], object.Set[key], object.Names[types.UID(key)], object.Any[key], object.Sizes[key] = value, value, value, value, i
	}
	if got := testing.AllocsPerRun(10, func() { objectsize.Of(object) }) - before; got > 12 {
		t.Errorf("%.0f allocations for 80 members of 5 maps", got)
	}
	for name, of := range map[string]*ofMaps{"texts": {Texts: object.Texts}, "set": {Set: object.Set}, "names": {Names: object.Names}} {
		sizes[name] = objectsize.Of(of)
	}
	if sizes["texts"] != sizes["set"] || sizes["texts"] != sizes["names"] || sizes["texts"] < 16*64 {
		t.Errorf("equal maps of several types have different sizes: %v", sizes)
	}
}

func TestOf_MetadataAsByReflection(t *testing.T) {
	full, yes, seconds, now := partial(1), true, int64(3), metav1.Now()
	full.GenerateName, full.Namespace, full.ResourceVersion = "object-", "a namespace of some length", "1000000001"
	full.SetSelfLink("/a/b")
	full.DeletionTimestamp, full.DeletionGracePeriodSeconds = &now, &seconds
	full.Labels = map[string]string{"app": "a", "a longer label than app": "with a longer value than a"}
	full.Finalizers = []string{"example.com/a-finalizer", "b"}
	full.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "an owner with a name", UID: types.UID(fmt.Sprintf("%036d", 1)), Controller: &yes}}
	for name, object := range map[string]*metav1.PartialObjectMetadata{"empty": {}, "small": partial(7), "full": full} {
		want, got := objectsize.Of(reflectedOf(object)), objectsize.Of(object)
		if got != want {
			t.Errorf("%s: %d bytes, by reflection %d", name, got, want)
		}
	}
	var none *metav1.PartialObjectMetadata
	if got := objectsize.Of(none); got != 0 {
		t.Errorf("nil: %d bytes", got)
	}
	if got := testing.AllocsPerRun(10, func() { objectsize.Of(full) }); got > 1 {
		t.Errorf("%.0f allocations", got)
	}
}
