package lister_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/packed"
)

// odd has fields of all kinds.
type odd struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Text    string             `json:"text"`
		Pointer *string            `json:"pointer"`
		Float   float64            `json:"float"`
		Single  float32            `json:"single"`
		Flag    *bool              `json:"flag"`
		List    []*int64           `json:"list"`
		Texts   map[string]string  `json:"texts"`
		Numbers map[string]float64 `json:"numbers"`
		Port    intstr.IntOrString `json:"port"`
		At      *metav1.Time       `json:"at"`
		Any     any                `json:"any"`
		Raw     runtime.RawExtension
	} `json:"spec"`
}

func (o *odd) DeepCopyObject() runtime.Object { panic("not called") }

// narrow has fields that not all integers fit.
type narrow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Bytes  []byte `json:"bytes"`
		Small  int8   `json:"small"`
		Unsign uint32 `json:"unsign"`
		Long   uint64 `json:"long"`
	} `json:"spec"`
}

func (n *narrow) DeepCopyObject() runtime.Object { panic("not called") }

// A field of each kind with each value: the results and the errors are those of trees.
func TestTyped_OfAPackedCacheHasTheSameObjectsAndErrors(t *testing.T) {
	testSame[*odd](t, func(a, b *odd) error {
		var x, y any
		if a.Spec.Raw.Raw == nil {
			return nil
		}
		err, otherErr := json.Unmarshal(a.Spec.Raw.Raw, &x), json.Unmarshal(b.Spec.Raw.Raw, &y)
		if err != nil || otherErr != nil || !reflect.DeepEqual(x, y) {
			return fmt.Errorf("JSON %s, want %s", b.Spec.Raw.Raw, a.Spec.Raw.Raw)
		}
		b.Spec.Raw.Raw = a.Spec.Raw.Raw // the next comparison is of the rest
		return nil
	})
	testSame[*narrow](t, func(*narrow, *narrow) error { return nil })
}

func testSame[T lister.Object](t *testing.T, raw func(want, got T) error) {
	t.Helper()
	values := []string{
		`null`, `""`, `"x"`, `"\u0000\"\\\u2028é\ud83d\ude00"`, `"aGk="`, `"2026-01-02T03:04:05Z"`, `"50%"`, `0`, `-1`, `7`, `127`, `128`, `4294967296`, `9223372036854775807`,
		`9223372036854775808`, `18446744073709551615`, `2.0`, `2.5`, `-0.0`, `1e3`, `1e300`, `true`, `false`, `[]`, `[null,1]`, `[1.5]`, `["a"]`, `{}`, `{"a":"b"}`, `{"a":null}`, `{"a":1}`,
		`{"a":1.0,"b":[{"c":[]}]}`, `{"kind":"A","apiVersion":"v1"}`,
	}
	var objs []any
	for field := range reflect.TypeFor[T]().Elem().Field(2).Type.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			name = field.Name
		}
		for i, value := range values {
			obj := parsed(t, "ns", fmt.Sprintf("%s-%d", strings.ToLower(name), i), fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Odd","metadata":{"labels":{"field":%q}},"spec":{%q:%s}}`, name, name, value))
			obj.SetResourceVersion(fmt.Sprint(i))
			objs = append(objs, obj)
		}
	}
	trees, fromPacked := lister.NewTyped[T](newIndexer(t, objs...), widgets), lister.NewTyped[T](newPacked(t, objs...), widgets)
	for range 2 { // the second time, the results are known
		want, wantErr := trees.List(nil)
		got, err := fromPacked.List(nil)
		if len(want) < 20 || wantErr == nil || err == nil {
			t.Fatalf("%d objects, error %v, want %v", len(got), err, wantErr)
		}
		if diff := cmp.Diff(strings.Split(wantErr.Error(), "\n"), strings.Split(err.Error(), "\n")); diff != "" {
			t.Errorf("errors (-want +got):\n%s", diff)
		}
		byName := map[string]T{}
		for _, object := range got {
			byName[object.GetName()] = object
		}
		for _, object := range want {
			other, there := byName[object.GetName()]
			if !there {
				t.Errorf("%s is missing", object.GetName())
				continue
			}
			if err := raw(object, other); err != nil || !reflect.DeepEqual(object, other) {
				t.Errorf("%s: %v (-want +got):\n%s", object.GetName(), err, cmp.Diff(object, other))
			}
		}
	}
}

func TestTyped_OfAPackedCacheConvertsEachObjectOnce(t *testing.T) {
	c := newPacked(t, newBlock(t, "ns", "a", "1", `{"sequence":1}`))
	typed := lister.NewTyped[*block](c, widgets)
	if first := get(t, typed, "ns/a"); get(t, typed, "ns/a") != first {
		t.Error("the same object was decoded again")
	}
	for n, state := range []map[string]string{{"resourceVersion": "1"}, {"resourceVersion": "2"}, {"resourceVersion": ""}, {"resourceVersion": ""}, {"resourceVersion": "2", "uid": "again"}} {
		changed := newBlock(t, "ns", "a", state["resourceVersion"], fmt.Sprintf(`{"sequence":%d}`, n+2))
		changed.SetUID(types.UID(state["uid"]))
		if err := c.cached.Replace(newPacked(t, changed).cached.List(), ""); err != nil {
			t.Fatal(err)
		}
		if after := get(t, typed, "ns/a"); after.Spec.Sequence != int64(n+2) {
			t.Errorf("%v: sequence %d, want %d", state, after.Spec.Sequence, n+2)
		}
	}
}

// 10,000 structs would take more memory than the packed objects.
func TestTyped_OfAPackedCacheKeepsFewResults(t *testing.T) {
	c := manyPacked(t)
	typed := lister.NewTyped[*odd](c, widgets)
	all, err := typed.List(nil)
	if err != nil || len(all) != 10_000 {
		t.Fatalf("%d objects, error %v", len(all), err)
	}
	known := map[*odd]bool{}
	for _, object := range all {
		known[object] = true
	}
	again := 0
	if all, err = typed.List(nil); err != nil {
		t.Fatal(err)
	}
	for _, object := range all {
		if known[object] {
			again++
		}
	}
	if again > 1024 || again == 0 {
		t.Errorf("%d results were kept", again)
	}
}

// A list has more objects than results are kept, so their numbers do not show that some are of deleted objects.
func TestTyped_OfAPackedCacheDropsTheResultsOfDeletedObjects(t *testing.T) {
	var objects []any
	for i := range 1400 {
		objects = append(objects, newObject("ns", fmt.Sprint("o", i), nil))
	}
	c := newPacked(t, objects...)
	typed := lister.NewTyped[*odd](c, widgets)
	kept := func() map[string]weak.Pointer[odd] {
		all, err := typed.List(nil)
		if err != nil {
			t.Fatal(err)
		}
		results := map[string]weak.Pointer[odd]{}
		for _, object := range all {
			results[object.Name] = weak.Make(object)
		}
		return results
	}()
	goruntime.GC()
	maps.DeleteFunc(kept, func(_ string, result weak.Pointer[odd]) bool { return result.Value() == nil })
	if len(kept) != 1024 {
		t.Fatalf("%d results are kept", len(kept))
	}
	for name := range kept {
		if len(kept) > 200 { // others stay
			delete(kept, name)
			continue
		}
		if err := c.cached.Delete(newObject("ns", name, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := typed.List(nil); err != nil {
		t.Fatal(err)
	}
	goruntime.GC()
	for name, result := range kept {
		if result.Value() != nil {
			t.Fatalf("the result of %s is still in memory", name)
		}
	}
	goruntime.KeepAlive(typed)
}

func TestTyped_OfAPackedCacheMakesNoTrees(t *testing.T) {
	content := strings.Repeat(`{"a":{"b":1},"c":[1,2,3],"d":"e"},`, 100)
	o := newPacked(t, parsed(t, "ns", "a", `{"kind":"A","apiVersion":"v1","metadata":{},"status":[`+strings.TrimSuffix(content, ",")+`]}`))
	typed := lister.NewTyped[*odd](o, widgets)
	if got := testing.AllocsPerRun(10, func() {
		if _, err := typed.Get("ns/a"); err != nil {
			t.Fatal(err)
		}
	}); got > 50 {
		t.Errorf("%v allocations", got)
	}
	if o.unpacked != 0 {
		t.Errorf("%d objects are unpacked", o.unpacked)
	}
	object, err := lister.GetCached[*packed.Object](lister.NewReader(o, widgets), "ns/a")
	if err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(10, func() {
		if _, err := packed.As[odd](object); err != nil {
			t.Fatal(err)
		}
	}); got > 50 {
		t.Errorf("As: %v allocations", got)
	}
}
