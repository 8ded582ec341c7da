package wire

import (
	"hash/maphash"
	"sync/atomic"
)

// maxInterned is the length of the longest string that is interned.
const maxInterned = 256

// stringTable interns strings. It is a fixed number of slots, so that it stays
// small whatever passes: a string that finds its slots taken takes one over. It
// takes two sightings for a string to enter, since most strings on a server, such
// as UIDs, are never seen again and would only drive out the others. It is safe for
// concurrent use and has no lock: what two goroutines do at once costs at worst a
// copy.
type stringTable struct {
	slots []atomic.Pointer[interned] // the length is a power of two
	seen  []atomic.Uint32            // marks of strings seen once
}

// interned is a string, and the same as an interface value: making one allocates.
type interned struct {
	text  string
	boxed any
}

func newStringTable(slots int) *stringTable {
	return &stringTable{
		slots: make([]atomic.Pointer[interned], slots),
		seen:  make([]atomic.Uint32, slots),
	}
}

// lookup returns the string whose bytes are text and whose hash is given, nil if
// it is not, or not yet, in the table.
func (t *stringTable) lookup(text []byte, hash uint64) *interned {
	first := hash & uint64(len(t.slots)-1)
	for _, slot := range [2]uint64{first, first ^ 1} {
		if in := t.slots[slot].Load(); in != nil && in.text == string(text) {
			return in
		}
	}
	mark := uint32(hash>>32) | 1 // zero is a slot that has seen nothing
	if t.seen[first].Load() != mark {
		t.seen[first].Store(mark)
		return nil
	}
	in := &interned{text: string(text)}
	in.boxed = in.text
	slot := first
	if t.slots[first].Load() != nil && (t.slots[first^1].Load() == nil || hash>>31&1 == 1) {
		slot ^= 1
	}
	t.slots[slot].Store(in)
	return in
}

// hashOf returns the hash of text under seed.
func hashOf(seed maphash.Seed, text []byte) uint64 { return maphash.Bytes(seed, text) }
