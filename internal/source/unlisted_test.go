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
