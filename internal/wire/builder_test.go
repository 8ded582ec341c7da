package wire

import (
	"slices"
	"sync"
	"testing"
)

// A builder at rest must not keep the last object alive.
func TestBuilder_KeepsNothing(t *testing.T) {
	for _, size := range []int{10, 100_000} {
		items := make([]any, size)
		for i := range items {
			items[i] = map[string]any{"i": i}
		}
		data := encode(t, map[string]any{"spec": items, "text": "\n"})
		b := &builder{tables: NewTables(Shared)}
		b.scanner = scanner{data: data}
		if _, ok := b.document(); !ok {
			t.Fatal("not decoded")
		}
		b.forget()
		if b.data != nil || b.drop != nil {
			t.Error("the document is kept")
		}
		if slices.ContainsFunc(b.elements[:cap(b.elements)], func(v any) bool { return v != nil }) {
			t.Error("elements are kept")
		}
		if slices.ContainsFunc(b.members[:cap(b.members)], func(m member) bool { return m != member{} }) {
			t.Error("members are kept")
		}
		if cap(b.elements) > 10_000 {
			t.Errorf("room for %d elements is kept", cap(b.elements))
		}
	}
}

// Nor one that was given up in the middle.
func TestBuilder_KeepsNothingOfWhatItGaveUp(t *testing.T) {
	b := &builder{tables: NewTables(Shared)}
	b.scanner = scanner{data: []byte(`{"a":{"b":"c"},"d":[1,{"e":[2,"f",`)}
	if _, ok := b.document(); ok || len(b.members) == 0 || len(b.elements) == 0 {
		t.Fatal("not given up with something on the stacks")
	}
	b.forget()
	if slices.ContainsFunc(b.elements[:cap(b.elements)], func(v any) bool { return v != nil }) {
		t.Error("elements are kept")
	}
	if slices.ContainsFunc(b.members[:cap(b.members)], func(m member) bool { return m != member{} }) {
		t.Error("members are kept")
	}
}

// Allocations are what costs, so they have a budget: about two a map, two a string
// that is new, and one an integer.
func TestDecode_Allocations(t *testing.T) {
	data := encode(t, block(1))
	settings := &Settings{Tables: NewTables(Shared)}
	decode := func() {
		settings.decode(data, func(b *builder) bool { _, ok := b.document(); return ok })
	}
	for range sightings {
		decode()
	}
	if got := testing.AllocsPerRun(100, decode); got > 190 {
		t.Errorf("%v allocations for an object that was seen before", got)
	}
	settings.Sharing = Shared
	for range sightings {
		decode()
	}
	if got := testing.AllocsPerRun(100, decode); got > 60 {
		t.Errorf("%v allocations for one whose parts are shared", got)
	}
	if got := testing.AllocsPerRun(100, func() {
		if s := (scanner{data: data}); !s.skip() {
			t.Error("not valid")
		}
	}); got != 0 {
		t.Errorf("%v allocations for scanning", got)
	}
}

// One client's decoders work at the same time, on the same tables.
func TestDecode_Concurrently(t *testing.T) {
	var docs [][]byte
	for i := range 12 {
		docs = append(docs, encode(t, block(i%6)))
	}
	for name, ours := range variants() {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for _, data := range docs {
						sameDecoding(t, ours, data)
					}
				})
			}
			wg.Wait()
		})
	}
}
