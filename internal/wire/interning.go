package wire

import "hash/maphash"

// maxInterned is the length of the longest string that is interned.
const maxInterned = 256

// stringTable interns strings.
type stringTable struct{ table[interned] }

// interned is a string, and the same string as an interface value, which saves the
// allocation of a conversion.
type interned struct {
	text  string
	boxed any
}

func newStringTable(slots int) *stringTable { return &stringTable{newTable[interned](slots)} }

// lookup returns the interned string for text, which has the given hash. It returns
// nil if the string is not in the table, or not yet.
func (t *stringTable) lookup(text []byte, hash uint64) *interned {
	first, second := t.pair(hash)
	mark := markOf(hash)
	if in := first.find(mark); in != nil && in.text == string(text) {
		return in
	}
	if in := second.find(mark); in != nil && in.text == string(text) {
		return in
	}
	if !t.again(hash) {
		return nil
	}
	in := &interned{text: string(text)}
	in.boxed = in.text
	t.put(hash, in)
	return in
}

// hashOf returns the hash of text with seed.
func hashOf(seed maphash.Seed, text []byte) uint64 { return maphash.Bytes(seed, text) }
