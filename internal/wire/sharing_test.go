package wire

import (
	"fmt"
	"reflect"
	"testing"
)

const givenHash = 0xdead_beef_0000_0001

// tableWith returns a table that has value at givenHash.
func tableWith(value any, members ...member) *subtreeTable {
	t := newSubtreeTable(8)
	t.again(givenHash)
	if t.again(givenHash) {
		t.offer(givenHash, &subtree{size: 10, members: members, value: value})
	}
	return t
}

func TestSubtrees_FindsEqualOnes(t *testing.T) {
	inner := map[string]any{"x": int64(1)}
	members := []member{{"a", inner}, {"b", "c"}}
	object := newObject(members)
	table := tableWith(object, members...)
	again := []member{{"a", map[string]any{"x": int64(1)}}, {"b", "c"}}
	if found := table.object(givenHash, again); reflect.ValueOf(found).Pointer() != reflect.ValueOf(object).Pointer() {
		t.Errorf("found %v, want the object in the table", found)
	}
	array := []any{int64(1), nil, inner}
	table = tableWith(array)
	if found, _ := table.array(givenHash, []any{int64(1), nil, map[string]any{"x": int64(1)}}).([]any); found == nil || &found[0] != &array[0] {
		t.Errorf("found %v, want the array in the table", found)
	}
}

// Values that differ are never merged, also if their hashes are equal by chance or
// by intent.
func TestSubtrees_CollisionsAreNotMerged(t *testing.T) {
	kept := map[string]any{"a": int64(1), "b": map[string]any{"x": "y"}}
	table := tableWith(kept, member{"a", int64(1)}, member{"b", map[string]any{"x": "y"}})
	for name, other := range map[string][]member{
		"other value":      {{"a", int64(2)}, {"b", map[string]any{"x": "y"}}},
		"float":            {{"a", 1.0}, {"b", map[string]any{"x": "y"}}},
		"null":             {{"a", nil}, {"b", map[string]any{"x": "y"}}},
		"other key":        {{"A", int64(1)}, {"b", map[string]any{"x": "y"}}},
		"other below":      {{"a", int64(1)}, {"b", map[string]any{"x": "z"}}},
		"other key below":  {{"a", int64(1)}, {"b", map[string]any{"z": "y"}}},
		"more below":       {{"a", int64(1)}, {"b", map[string]any{"x": "y", "z": nil}}},
		"array for object": {{"a", int64(1)}, {"b", []any{"x"}}},
		"less":             {{"a", int64(1)}},
		"more":             {{"a", int64(1)}, {"b", map[string]any{"x": "y"}}, {"c", nil}},
		"a key twice":      {{"a", int64(1)}, {"a", int64(1)}},
		"nothing":          {},
	} {
		if found := table.object(givenHash, other); found != nil {
			t.Errorf("%s: merged with %v", name, found)
		}
	}
	if found := table.array(givenHash, []any{}); found != nil {
		t.Errorf("array merged with object %v", found)
	}
	table = tableWith([]any{0.0, "a", []any{true}})
	for name, other := range map[string][]any{
		"minus zero":  {negativeZero(), "a", []any{true}},
		"integer":     {int64(0), "a", []any{true}},
		"other below": {0.0, "a", []any{false}},
		"less":        {0.0, "a"},
		"string":      {0.0, "a", "true"},
		"null":        {nil, "a", []any{true}},
	} {
		if found := table.array(givenHash, other); found != nil {
			t.Errorf("%s: merged with %v", name, found)
		}
	}
	if found := table.object(givenHash, []member{{"a", 0.0}}); found != nil {
		t.Errorf("object merged with array %v", found)
	}
}

func negativeZero() float64 { zero := 0.0; return -zero }

func TestStrings_CollisionsAreNotMerged(t *testing.T) {
	table := newStringTable(8)
	for range sightings {
		table.lookup([]byte("one"), givenHash)
	}
	if in := table.lookup([]byte("one"), givenHash); in == nil || in.text != "one" || in.boxed != any("one") {
		t.Fatalf("found %v, want one", in)
	}
	for range sightings {
		if in := table.lookup([]byte("two"), givenHash); in != nil && in.text != "two" {
			t.Errorf("two became %q", in.text)
		}
	}
}

func TestStrings_AreKeptFromTheSecondTimeOn(t *testing.T) {
	table := newStringTable(8)
	if in := table.lookup([]byte("a"), givenHash); in != nil {
		t.Errorf("%q is kept after the first time", in.text)
	}
	first := table.lookup([]byte("a"), givenHash)
	if first == nil || table.lookup([]byte("a"), givenHash) != first {
		t.Error("not kept after the second time")
	}
}

func TestTables_AreBounded(t *testing.T) {
	whole(t)
	tables := NewTables(Shared)
	limited := newTables(Shared, largeSizes)
	limited.subtrees = newSubtreeTable(64)
	tables.current.Store(limited)
	settings := &Settings{Tables: tables, Sharing: Shared}
	value := make([]byte, 3000)
	for i := range value {
		value[i] = 'v'
	}
	for i := range 4000 {
		data := fmt.Appendf(nil, `{"spec":{"n":%d,"text":%q},"large":{"n":%d,"text":"%s%s"}}`, i, value, i, value, value)
		for range sightings {
			settings.decode(data, func(b *builder) bool { _, ok := b.document(); return ok })
		}
	}
	held, filled := int64(0), 0
	for i := range limited.subtrees.slots {
		if s := limited.subtrees.slots[i].value.Load(); s != nil {
			held += int64(s.size)
			filled++
			if s.size > maxSharedText {
				t.Errorf("a subtree of %d bytes is kept", s.size)
			}
		}
	}
	if filled == 0 || held != limited.subtrees.held.Load() {
		t.Errorf("%d subtrees with %d bytes, %d by the count", filled, held, limited.subtrees.held.Load())
	}
}

func TestSubtrees_TogetherAreBounded(t *testing.T) {
	table := newSubtreeTable(1 << 13)
	for hash := range uint64(1 << 13) {
		table.offer(hash, &subtree{size: maxSharedTotal >> 11, value: []any{hash}})
	}
	if held := table.held.Load(); held > maxSharedTotal || held < maxSharedTotal/2 {
		t.Errorf("%d bytes held, want at most %d and not much less", held, maxSharedTotal)
	}
	// New subtrees replace old ones in a full table.
	for hash := range uint64(1 << 13) {
		table.offer(hash, &subtree{size: 10, value: []any{hash}})
	}
	if held := table.held.Load(); held > maxSharedTotal/2 {
		t.Errorf("%d bytes held, want small subtrees to replace the large ones", held)
	}
}

// An object whose JSON has a key twice has fewer members than its JSON. If it were
// shared, another object could be taken for equal.
func TestSubtrees_AnObjectWithARepeatedKeyIsNotShared(t *testing.T) {
	settings := &Settings{Tables: NewTables(Shared), Sharing: Shared}
	for range 2 * sightings {
		settings.decode([]byte(`{"spec":{"a":1,"a":1}}`), func(b *builder) bool { _, ok := b.document(); return ok })
	}
	for i := range settings.Tables.current.Load().subtrees.slots {
		if s := settings.Tables.current.Load().subtrees.slots[i].value.Load(); s != nil {
			t.Errorf("%v is kept", s.value)
		}
	}
}

// No two objects are equal, and no two metadata: neither is looked up or shared.
func TestSubtrees_AnObjectAndItsMetadataAreNotShared(t *testing.T) {
	settings := &Settings{Tables: NewTables(Shared), Sharing: Shared}
	var objects [2 * sightings]map[string]any
	for i := range objects {
		settings.decode([]byte(`{"kind":"Widget","metadata":{"name":"a"},"spec":{"a":1}}`), func(b *builder) bool {
			var ok bool
			objects[i], ok = b.document()
			return ok
		})
	}
	last, before := objects[len(objects)-1], objects[len(objects)-2]
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	if !same(last["spec"], before["spec"]) {
		t.Error("the specs are not shared")
	}
	if same(last, before) || same(last["metadata"], before["metadata"]) {
		t.Error("the objects, or their metadata, are shared")
	}
}

// Two values with the same slots that alternate are both stored in time.
func TestTable_StoresValuesThatAlternate(t *testing.T) {
	table := newStringTable(2)
	a, b := []byte("a"), []byte("b")
	for range 200 {
		table.lookup(a, givenHash)
		table.lookup(b, givenHash^1<<40)
	}
	if table.lookup(a, givenHash) == nil || table.lookup(b, givenHash^1<<40) == nil {
		t.Error("one is not in the table")
	}
}
