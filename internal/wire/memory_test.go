//go:build !race

// The race detector makes small values take more memory.

package wire

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A table counts as much memory as its subtrees take, however many members they have, and little more.
func TestSubtrees_CountTheirMemory(t *testing.T) {
	whole(t)
	const subtrees = 400
	for name, subtree := range map[string]func(number int) string{
		"1 member":    func(number int) string { return subtreeWith(1, number) },
		"8 members":   func(number int) string { return subtreeWith(8, number) },
		"9 members":   func(number int) string { return subtreeWith(9, number) },
		"112 members": func(number int) string { return subtreeWith(112, number) },
		"113 members": func(number int) string { return subtreeWith(113, number) },
		"400 members": func(number int) string { return subtreeWith(400, number) },
		"numbers":     func(number int) string { return fmt.Sprintf("[%d%s]", 1000+number, strings.Repeat(",-1,0.5", 200)) },
		"a long text": func(number int) string { return fmt.Sprintf(`["%04000d"]`, number) },
		"a key twice": func(number int) string { return fmt.Sprintf(`[%d%s]`, number, strings.Repeat(`,{"a":1,"a":1}`, 200)) },
	} {
		large := newTables(Shared, largeSizes)
		settings := &Settings{Tables: NewTables(Shared), Sharing: Shared}
		settings.Tables.current.Store(large)
		var b strings.Builder
		for i := range subtrees {
			fmt.Fprintf(&b, `"s%d":%s,`, i, subtree(i))
		}
		data := []byte(`{"spec":{` + b.String() + `"end":1}}`)
		before := heap()
		for range sightings {
			settings.decode(data, func(b *builder) bool { _, ok := b.document(); return ok })
		}
		used, counted := int64(heap()-before), large.subtrees.held.Load() //nolint:gosec // it is small
		t.Logf("%s: %d bytes, counted %d", name, used, counted)
		if most := counted + 64<<10; used > most || used < counted/2 { // 64 KB for the keys of data, for example
			t.Errorf("%s: %d bytes are counted, and the subtrees take %d", name, counted, used)
		}
		runtime.KeepAlive(data)
		runtime.KeepAlive(settings)
	}
}
