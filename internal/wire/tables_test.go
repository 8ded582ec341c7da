package wire

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What dynamicclient.New and WithSharing say of memory are these bounds.
const (
	boundOfOwn    = 13 << 20
	boundOfShared = 100 << 20
)

// What the tables keep when the longest strings that they intern have passed, in more
// number than there are slots, and the subtrees that take the most memory for a byte.
func TestTables_TakeNoMoreMemoryThanDocumented(t *testing.T) {
	for _, test := range []struct {
		sharing Sharing
		bound   uint64
	}{{Own, boundOfOwn}, {Shared, boundOfShared}} {
		tables := NewTables(test.sharing)
		settings := &Settings{Tables: tables, Sharing: test.sharing}
		for batch := range 20 {
			data := worst(batch)
			for range sightings {
				if !settings.decode(data, func(b *builder) bool { _, ok := b.document(); return ok }) {
					t.Fatal("not decoded")
				}
			}
		}
		with := heap()
		runtime.KeepAlive(settings) // and with it the tables, which go now
		taken := with - heap()
		t.Logf("sharing %v: %.1f MB", bool(test.sharing), float64(taken)/(1<<20))
		if taken > test.bound || taken < test.bound/2 {
			t.Errorf("sharing %v: the tables take %d bytes, want at most %d, and no less than half of that", bool(test.sharing), taken, test.bound)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func worst(batch int) []byte {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"v1","kind":"A","spec":{`)
	for i := range 2000 {
		long := fmt.Sprintf("%0*d", maxInterned, batch*2000+i)
		fmt.Fprintf(&b, `"%s":"x%s",`, long, long[1:])
		fmt.Fprintf(&b, `"s%d":{`, i)
		for member := range 50 {
			fmt.Fprintf(&b, `"k%02d":%d,`, member, (batch*2000+i)%10000)
		}
		fmt.Fprintf(&b, `"n":%d},`, batch*2000+i)
	}
	b.WriteString(`"end":1}}`)
	return []byte(b.String())
}
