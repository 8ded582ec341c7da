package wire

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A builder in the pool must not keep the last object alive.
func TestBuilder_KeepsNoObjectsAlive(t *testing.T) {
	for _, size := range []int{10, 100_000} {
		items := make([]any, size)
		for i := range items {
			items[i] = map[string]any{"i": i}
		}
		data := encode(t, map[string]any{"spec": items, "text": "\n"})
		b := &builder{tables: newTables(Shared, smallSizes)}
		b.scanner = scanner{data: data}
		if _, ok := b.document(); !ok {
			t.Fatal("not decoded")
		}
		b.reset()
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
			t.Errorf("a capacity of %d elements is kept", cap(b.elements))
		}
	}
}

func TestBuilder_KeepsNothingOfAnIncompleteDocument(t *testing.T) {
	b := &builder{tables: newTables(Shared, smallSizes)}
	b.scanner = scanner{data: []byte(`{"a":{"b":"c"},"d":[1,{"e":[2,"f",`)}
	if _, ok := b.document(); ok || len(b.members) == 0 || len(b.elements) == 0 {
		t.Fatal("the stacks are empty after an incomplete document")
	}
	b.reset()
	if slices.ContainsFunc(b.elements[:cap(b.elements)], func(v any) bool { return v != nil }) {
		t.Error("elements are kept")
	}
	if slices.ContainsFunc(b.members[:cap(b.members)], func(m member) bool { return m != member{} }) {
		t.Error("members are kept")
	}
}

// The longest strings with escapes are rare.
func TestBuilder_KeepsNoLargeStrings(t *testing.T) {
	text := []byte(`"` + strings.Repeat(`\n`, 100_000) + `"`)
	b := &builder{tables: newTables(Own, smallSizes)}
	b.scanner = scanner{data: text}
	_, ok := b.value(place{})
	b.scan.Reset(text)
	_, read := b.scan.Text()
	b.reset()
	if !ok || !read || cap(b.scratch) > 10_000 || cap(b.scan.scratch) > 10_000 {
		t.Errorf("capacities of %d and %d bytes are kept", cap(b.scratch), cap(b.scan.scratch))
	}
	if b.scan.data != nil {
		t.Error("the document is kept")
	}
}

// Most of the time of decoding is allocation. Expected are about two allocations per
// map, two per new string, and one per integer.
func TestDecode_Allocations(t *testing.T) {
	data := encode(t, block(1))
	settings := &Settings{}
	decode := func() {
		settings.decode(data, func(b *builder) bool { _, ok := b.document(); return ok })
	}
	// allocations returns the least of five new tables: in a table, whose hash has a random seed,
	// strings may have the same slot, and are then decoded anew.
	allocations := func() float64 {
		least := math.Inf(1)
		for range 5 {
			settings.Tables = NewTables(Shared)
			for range sightings {
				decode()
			}
			least = min(least, testing.AllocsPerRun(20, decode))
		}
		return least
	}
	if got := allocations(); got > 190 {
		t.Errorf("%v allocations for an object that was decoded before", got)
	}
	settings.Sharing = Shared
	if got := allocations(); got > 60 {
		t.Errorf("%v allocations for an object whose parts are shared", got)
	}
	if got := testing.AllocsPerRun(100, func() {
		if s := (scanner{data: data}); !s.skip() {
			t.Error("not valid")
		}
	}); got != 0 {
		t.Errorf("%v allocations for scanning", got)
	}
}

// The decoders of one client use the same tables at the same time.
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
