package packed

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// alike compares the content of two tapes with what ContentLike makes of them.
func alike(t *testing.T, a, b Tape) {
	t.Helper()
	for _, pair := range [][2]Tape{{a, b}, {b, a}, {a, a}} {
		want, like := pair[0].Content(), pair[1].Content()
		before := runtime.DeepCopyJSON(like)
		if got := pair[0].ContentLike(pair[1], like); !same(want, got) || !same(before, like) {
			t.Fatalf("content\n%.2000q, want\n%.2000q, like\n%.2000q", fmt.Sprint(got), fmt.Sprint(want), fmt.Sprint(like))
		}
	}
}

func TestContentLike_AsContent(t *testing.T) {
	whole(t)
	p := NewPacker()
	var tapes []Tape
	for range 2 { // the later ones have more in the dictionary
		for _, text := range corpus() {
			if tape, ok := p.FromJSON([]byte(text), nil); ok {
				tapes = append(tapes, tape)
			}
		}
	}
	for i := range 40 {
		tape, _ := p.FromJSON(encode(t, block(i%10)), nil)
		tapes = append(tapes, tape)
	}
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // test data
	for i, tape := range tapes {
		if i > 0 {
			alike(t, tapes[i-1], tape)
		}
		for range 3 {
			alike(t, tape, tapes[r.IntN(len(tapes))])
		}
	}
	other, _ := NewPacker().FromJSON(encode(t, block(1)), nil)
	alike(t, tapes[len(tapes)-1], other)
	alike(t, Tape{}, Tape{})
}

func TestContentLike_HeadsDiffer(t *testing.T) {
	p := NewPacker()
	pack := func(metadata string) Tape {
		tape, ok := p.FromJSON([]byte(`{"kind":"A","metadata":{`+metadata+`,"labels":{"a":"b"}},"spec":{"name":"x"}}`), nil)
		if !ok {
			t.Fatal(metadata)
		}
		return tape
	}
	for _, metadata := range []string{
		`"name":"b","namespace":"n","uid":"u","resourceVersion":"1"`, `"name":"a","namespace":"m","uid":"u","resourceVersion":"1"`,
		`"name":"a","namespace":"n","uid":"v","resourceVersion":"1"`, `"name":"a","namespace":"n","uid":"u","resourceVersion":"2"`,
		`"name":7,"namespace":"n","uid":"u","resourceVersion":"1"`, `"uid":"u","resourceVersion":"1","name":"a","namespace":"n"`,
		`"name":"a","name":"b","uid":"u","resourceVersion":"1"`,
	} {
		alike(t, pack(`"name":"a","namespace":"n","uid":"u","resourceVersion":"1"`), pack(metadata))
	}
}

// Only what differs is decoded again.
func TestContentLike_HasEqualPartsInCommon(t *testing.T) {
	p := NewPacker()
	pack := func(version, color string) Tape {
		tape, ok := p.FromJSON([]byte(`{"kind":"A","metadata":{"name":"a","resourceVersion":"`+version+`","labels":{"a":"b"}},"spec":{"color":"`+color+`","equal":{"x":[1,2,3]}},"array":[{"a":1},{"color":"`+color+`"}]}`), nil)
		if !ok {
			t.Fatal(color)
		}
		return tape
	}
	later, earlier := pack("2", "red"), pack("1", "blue")
	like := later.Content()
	got := earlier.ContentLike(later, like)
	shares := func(at ...any) bool {
		a, b := any(got), any(like)
		for _, step := range at {
			if name, is := step.(string); is {
				a, b = a.(map[string]any)[name], b.(map[string]any)[name]
				continue
			}
			a, b = a.([]any)[step.(int)], b.([]any)[step.(int)]
		}
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	}
	if !same(earlier.Content(), got) || !shares("metadata", "labels") || !shares("spec", "equal") || !shares("array", 0) || shares("array", 1) || shares("spec") {
		t.Errorf("%v, like %v", got, like)
	}
}

// A program may have written to the object that another handler gets after it.
func TestContentLike_SurvivesWritesToTheOtherTree(t *testing.T) {
	p := NewPacker()
	pack := func(text string) Tape {
		tape, ok := p.FromJSON([]byte(text), nil)
		if !ok {
			t.Fatal(text)
		}
		return tape
	}
	before := pack(`{"kind":"A","metadata":{"name":"a"},"spec":{"list":[1,2,3,4,5,6],"map":{"x":1}}}`)
	after := pack(`{"kind":"A","metadata":{"name":"a"},"spec":{"list":[7],"map":[8]}}`)
	tree := after.Content()
	tree["spec"].(map[string]any)["list"] = []any{int64(7), int64(7), int64(7), int64(7), int64(7), int64(7), int64(7)}
	tree["spec"].(map[string]any)["map"] = map[string]any{"y": int64(8)}
	if got, want := before.ContentLike(after, tree), before.Content(); !same(want, got) {
		t.Errorf("content %v, want %v", got, want)
	}
}
