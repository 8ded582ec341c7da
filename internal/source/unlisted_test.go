package source

import (
	"fmt"
	"testing"
)

// BenchmarkKnown_Unstored is the first call for all namespaces after their lists.
func BenchmarkKnown_Unstored(b *testing.B) {
	const namespaces, objects = 200, 100
	k := &known{objects: newIdentities(namespaces * objects), positions: map[string]position{}}
	var names []string
	for i := range namespaces {
		name := fmt.Sprintf("n%03d", i)
		names = append(names, name)
		for n := range objects {
			k.objects.put(fmt.Sprintf("%s/o%d", name, n), identity{version: "1"})
		}
	}
	has := func(string) (any, bool) { return nil, true }
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range names {
			k.positions[name] = position{version: "1", listed: true, storing: &storing{}}
		}
		if unstored := k.unstored(names, has); len(unstored) > 0 {
			b.Fatal(unstored)
		}
	}
}

// Other goroutines may read what is listed after a list is complete, and before its namespaces are known.
func TestKnown_NamespacesAreListedWhenTheirPositionsAreKnown(t *testing.T) {
	lists := func(k *known) bool { return k.lists([]string{"ns"}) && len(k.unstored([]string{"ns"}, nil)) == 0 }
	for name, positions := range map[string]map[string]position{"all": nil, "one": {"ns": {listed: true}}} {
		t.Run(name, func(t *testing.T) {
			var k known
			if k.completed("1", Type{}); lists(&k) {
				t.Error("a namespace is listed before its position is known")
			}
			if k.locate(positions, false); !lists(&k) {
				t.Error("a namespace is not listed")
			}
			if k.outdated(); positions == nil && lists(&k) {
				t.Error("a namespace is listed that was in another type")
			}
		})
	}
}
