package wire

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// marks returns the number of strings that the table has seen once, or more often.
func marks(t *stringTable) (n int) {
	for i := range t.slots {
		if t.slots[i].seen.Load() != 0 {
			n++
		}
	}
	return n
}

func TestLookups_OfTextsThatDoNotRepeatAreRare(t *testing.T) {
	const unique = 20_000
	b := &builder{tables: newTables(Own, largeSizes), lookups: &lookups{}}
	for i := range unique {
		b.intern(fmt.Append(nil, "a name ", i))
	}
	if got := marks(b.tables.strings); got < unique/countedEvery/2 || got > unique/3 {
		t.Errorf("%d look-ups of %d texts", got, unique)
	}
}

func TestLookups_OfTextsThatBeginToRepeatFindThem(t *testing.T) {
	b := &builder{tables: newTables(Own, largeSizes), lookups: &lookups{}}
	for i := range 20_000 {
		b.intern(fmt.Append(nil, "a name ", i))
	}
	for i := range 2000 {
		in, hash := b.intern(fmt.Append(nil, "a node ", i%5))
		if i > 1000 && (in == nil || hash == unseen) {
			t.Fatalf("text %d is not shared", i)
		}
	}
}

func TestLookups_OfTextsOfWhichSomeRepeatAreMade(t *testing.T) {
	b := &builder{tables: newTables(Own, largeSizes), lookups: &lookups{}}
	for i := range 10_000 {
		b.intern(fmt.Append(nil, "a name ", i))
		if in, _ := b.intern(fmt.Append(nil, "a node ", i%2)); in == nil && i > 10 {
			t.Fatalf("text %d is not shared", i)
		}
	}
}

// named has texts at several places.
type named struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Pod  string  `json:"pod"`
	Node *string `json:"node"`
	In   []struct {
		Pods []string `json:"pods"`
	} `json:"in"`
	Of map[string]string   `json:"of"`
	As map[string]nodeName `json:"as"`
}

type nodeName string

func (n *named) DeepCopyObject() runtime.Object { return n }

// Names are in the objects of all forms, and nodes beside them at other places. Only nodes repeat.
func TestLookups_AreThoseOfOnePlace(t *testing.T) {
	const objects = 8000
	for name, tc := range map[string]struct {
		json string
		into Form
		node func(object any) string
	}{
		"fields": {
			`{"pod":"p%[1]d","node":"n%[2]d"}`, NewStruct(reflect.TypeFor[named]()),
			func(object any) string { return *object.(*named).Node },
		},
		"elements": {
			`{"in":[{"pods":["p%[1]d"]}],"node":"n%[2]d"}`, NewStruct(reflect.TypeFor[named]()),
			func(object any) string { return *object.(*named).Node },
		},
		"texts": {
			`{"of":{"pod":"p%[1]d","node":"n%[2]d"}}`, NewStruct(reflect.TypeFor[named]()),
			func(object any) string { return object.(*named).Of["node"] },
		},
		"values of a map": {
			`{"as":{"pod":"p%[1]d","node":"n%[2]d"}}`, NewStruct(reflect.TypeFor[named]()),
			func(object any) string { return string(object.(*named).As["node"]) },
		},
		"members": {
			`{"pod":"p%[1]d","node":"n%[2]d"}`, nil,
			func(object any) string { return object.(map[string]any)["node"].(string) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := &Settings{Tables: NewTables(Shared), Sharing: Shared, Into: tc.into}
			large := newTables(Shared, largeSizes)
			settings.Tables.current.Store(large)
			last := ""
			for i := range objects {
				var object any
				data := fmt.Appendf(nil, tc.json, i, i/100%2)
				ok := settings.decode(data, func(b *builder) (ok bool) {
					if tc.into == nil {
						object, ok = b.document()
					} else {
						object, ok = tc.into.item(b, metav1.TypeMeta{})
					}
					return ok
				})
				if !ok {
					t.Fatalf("%s is not ordinary", data)
				}
				if node := tc.node(object); i%100 > 3 && unsafe.StringData(node) != unsafe.StringData(last) {
					t.Fatalf("node %d is not shared", i)
				}
				last = tc.node(object)
			}
			if got := marks(large.strings); got < objects/countedEvery/2 || got > objects/2 {
				t.Errorf("%d look-ups of %d names", got, objects)
			}
		})
	}
}

// Parts of metadata that all differ are not read twice, and are shared when they begin to repeat.
func TestLookups_OfPartsThatDoNotRepeatAreRare(t *testing.T) {
	parts := NewParts[map[string]string](1 << 14)
	share := fillShared(fillTexts, func() *Parts[map[string]string] { return parts })
	tables := NewTables(Shared)
	decode := func(value int) (labels map[string]string) {
		data := fmt.Appendf(nil, `{"a":"%d"}`, value)
		if !tables.decode(data, len(data), &Settings{Tables: tables, Sharing: Shared}, func(b *builder) bool {
			return share(b, reflect.ValueOf(&labels).Elem())
		}) {
			t.Fatalf("%s is not ordinary", data)
		}
		return labels
	}
	const unique = 10_000
	for i := range unique {
		if got := decode(i)["a"]; got != fmt.Sprint(i) {
			t.Fatalf("labels %d have %q", i, got)
		}
	}
	seen := 0
	for i := range parts.table.slots {
		if parts.table.slots[i].seen.Load() != 0 {
			seen++
		}
	}
	if seen < unique/countedEvery/2 || seen > unique/3 {
		t.Errorf("%d look-ups of %d parts", seen, unique)
	}
	var last map[string]string
	for range 1000 {
		last = decode(-1)
	}
	if again := decode(-1); reflect.ValueOf(again).Pointer() != reflect.ValueOf(last).Pointer() {
		t.Error("equal parts are not shared")
	}
}

// Parts that occur three times are shared also after many that occur once. The third occurrence is the first one that takes no memory, but
// the second one shows that parts repeat.
func TestLookups_OfPartsThatOccurThreeTimesFindThem(t *testing.T) {
	parts := NewParts[map[string]string](1 << 14)
	share := fillShared(fillTexts, func() *Parts[map[string]string] { return parts })
	b := &builder{tables: newTables(Shared, largeSizes), sharing: Shared}
	decode := func(value int) (labels map[string]string) {
		b.scanner = scanner{data: fmt.Appendf(nil, `{"a":"%d"}`, value)}
		if !share(b, reflect.ValueOf(&labels).Elem()) {
			t.Fatalf("%s is not ordinary", b.data)
		}
		return labels
	}
	next := 0
	for range 10_000 {
		next++
		decode(next)
	}
	shared := 0
	for range 1000 {
		next++
		decode(next)
		if second, third := decode(next), decode(next); reflect.ValueOf(second).Pointer() == reflect.ValueOf(third).Pointer() {
			shared++
		}
	}
	if shared < 500 {
		t.Errorf("%d of 1000 parts are shared", shared)
	}
}
