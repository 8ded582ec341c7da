package handlers

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// withText returns a state of an object with some KB of content.
func withText(name string, version int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{
			"namespace": "ns", "name": name, "resourceVersion": fmt.Sprint(version), "labels": map[string]any{"a": "b"},
			"managedFields": []any{map[string]any{"manager": "kubectl"}},
		},
		"spec": map[string]any{"text": strings.Repeat(name, 4096)},
	}}
}

// A handler does not return from a call while each object is updated. The old states beyond the limit are not in memory.
func TestSet_CoalescingLimitsTheStatesInMemory(t *testing.T) {
	const objects = 1000
	grown := func(limit int) float64 {
		i := &informer{}
		s := NewSet(i, &feed{}, nil)
		if _, err := s.Add(cache.ResourceEventHandlerFuncs{}, cache.HandlerOptions{}, NewGroup("", Options{Coalescing: true, States: limit}), 0); err != nil {
			t.Fatal(err)
		}
		h := i.handlers[0]
		stored := make([]*unstructured.Unstructured, objects)
		for n := range stored {
			stored[n] = withText(fmt.Sprint(1000+n), 1)
		}
		heap := func() float64 {
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return float64(stats.HeapAlloc)
		}
		before := heap()
		for n, old := range stored {
			stored[n] = withText(fmt.Sprint(1000+n), 2)
			h.OnUpdate(old, stored[n])
		}
		grown := heap() - before
		runtime.KeepAlive(stored)
		runtime.KeepAlive(h)
		return grown / objects
	}
	whole, limited := grown(0), grown(10)
	t.Logf("bytes for each of %d waiting updates: %.0f without a limit, %.0f with a limit of 10", objects, whole, limited)
	if whole < 16<<10 || limited > 4<<10 {
		t.Errorf("each waiting update needs %.0f bytes without a limit, and %.0f with one", whole, limited)
	}
}

func TestPending_StatesBeyondTheLimitHaveOnlyMetadata(t *testing.T) {
	p := pending{limit: 2, reduce: (&Set{}).reducedEvent}
	for _, e := range []event{
		update(withText("a", 1), withText("a", 2)),
		deletion(withText("b", 1)),
		update(withText("c", 1), withText("c", 2)), // beyond the limit
		deletion(withText("d", 1)),                 // beyond the limit
		deletion(cache.DeletedFinalStateUnknown{Key: "ns/e", Obj: withText("e", 1)}),
		addition(withText("f", 1), false),
		update(withText("f", 1), withText("f", 2)),
		update(withText("a", 2), withText("a", 3)), // it has a place
		update(withText("c", 2), withText("c", 3)), // its first state has only metadata
	} {
		p.add(e)
	}
	if p.states != 2 {
		t.Errorf("%d states are counted", p.states)
	}
	var got []string
	take := func() {
		e, _ := p.next()
		got = append(got, described(e))
	}
	take()
	p.add(deletion(withText("c", 4))) // the place of a is free
	for p.first != nil {
		take()
	}
	want := []string{
		"update a1 whole, a3 whole", "delete b1 whole", "delete c4 whole", "delete d1 ns/d", "delete e1 ns/e", "add f2 whole",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if p.states != 0 {
		t.Errorf("%d states are counted at the end", p.states)
	}
}

// described returns an event of objects of withText as text: whether they are whole, and the key of an unknown state.
func described(e event) string {
	of := func(obj any) string {
		key := ""
		if last, is := obj.(cache.DeletedFinalStateUnknown); is {
			obj, key = last.Obj, " "+last.Key
		}
		u := obj.(*unstructured.Unstructured)
		if u.Object["spec"] != nil {
			key += " whole"
		}
		return u.GetName() + u.GetResourceVersion() + key
	}
	switch e.kind {
	case added:
		return "add " + of(e.obj)
	case updated:
		return "update " + of(e.old) + ", " + of(e.obj)
	}
	return "delete " + of(e.obj)
}

// TypedThing is a Go type of objects.
type TypedThing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec string `json:"spec"`
}

func (o *TypedThing) DeepCopyObject() kruntime.Object { c := *o; return &c }

// byPointer has metadata that can't be copied to a new object.
type byPointer struct {
	*TypedThing

	Spec string
}

func TestSet_ReducesEachFormOfObjects(t *testing.T) {
	metadata := metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}
	reduced := metav1.ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}}
	kind := metav1.TypeMeta{APIVersion: "v1", Kind: "Thing"}
	s := &Set{}
	for _, tc := range []struct{ state, want any }{
		{&TypedThing{kind, metadata, "a"}, &TypedThing{kind, reduced, ""}},
		{&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metadata}, &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: reduced}},
		{&byPointer{&TypedThing{kind, metadata, "a"}, "b"}, &byPointer{&TypedThing{kind, metadata, "a"}, "b"}},
		{&unstructured.Unstructured{Object: map[string]any{"a": "b"}}, &unstructured.Unstructured{Object: map[string]any{}}},
		{cache.DeletedFinalStateUnknown{Key: "k", Obj: nil}, cache.DeletedFinalStateUnknown{Key: "k", Obj: nil}},
		{(*TypedThing)(nil), (*TypedThing)(nil)},
		{"a text", "a text"},
		{nil, nil},
	} {
		before := fmt.Sprintf("%+v", tc.state)
		if diff := cmp.Diff(tc.want, s.reduced(tc.state)); diff != "" {
			t.Errorf("%T (-want +got):\n%s", tc.state, diff)
		}
		if after := fmt.Sprintf("%+v", tc.state); after != before {
			t.Errorf("%T has changed: %s, before %s", tc.state, after, before)
		}
	}
	whole := withText("a", 1)
	got := s.reduced(whole).(*unstructured.Unstructured)
	want := withText("a", 1)
	delete(want.Object, "spec")
	delete(want.Object["metadata"].(map[string]any), "managedFields")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	packer := packed.NewPacker()
	pack := func(object kruntime.Object) kruntime.Object {
		result, err := packer.Pack(object.(*unstructured.Unstructured))
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	object := pack(whole).(*packed.Object)
	if s.reduced(object) != any(object) {
		t.Error("a packed object is reduced by an informer that does not pack")
	}
	s.Pack = pack
	if diff := cmp.Diff(want, s.reduced(object).(*packed.Object).Unstructured()); diff != "" {
		t.Errorf("packed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(whole, object.Unstructured()); diff != "" {
		t.Errorf("the packed state has changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(withText("a", 1), whole); diff != "" {
		t.Errorf("the state has changed (-want +got):\n%s", diff)
	}
}
