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
	slots []stringSlot // the length is a power of two
}

// stringSlot has all that a string which is new needs to look at in one place.
type stringSlot struct {
	string atomic.Pointer[interned]
	mark   atomic.Uint32 // of string
	seen   atomic.Uint32 // mark of a string that was seen once
}

// interned is a string, and the same as an interface value: making one allocates.
type interned struct {
	text  string
	boxed any
}

func newStringTable(slots int) *stringTable { return &stringTable{slots: make([]stringSlot, slots)} }

// markOf returns a part of hash that tells those in one slot apart. Zero is a slot
// that has seen nothing.
func markOf(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// lookup returns the string whose bytes are text and whose hash is given, nil if
// it is not, or not yet, in the table.
func (t *stringTable) lookup(text []byte, hash uint64) *interned {
	index, mark := hash&uint64(len(t.slots)-1), markOf(hash)
	first, second := &t.slots[index], &t.slots[index^1]
	if in := first.find(text, mark); in != nil {
		return in
	}
	if in := second.find(text, mark); in != nil {
		return in
	}
	if first.seen.Load() != mark {
		first.seen.Store(mark)
		return nil
	}
	in := &interned{text: string(text)}
	in.boxed = in.text
	if first.mark.Load() != 0 && (second.mark.Load() == 0 || mark&2 == 0) {
		first = second
	}
	first.string.Store(in)
	first.mark.Store(mark)
	return in
}

// find returns the slot's string if it is text. Mark and string may be of two
// strings, if another goroutine is putting one in.
func (s *stringSlot) find(text []byte, mark uint32) *interned {
	if s.mark.Load() != mark {
		return nil
	}
	if in := s.string.Load(); in != nil && in.text == string(text) {
		return in
	}
	return nil
}

// hashOf returns the hash of text under seed.
func hashOf(seed maphash.Seed, text []byte) uint64 { return maphash.Bytes(seed, text) }
