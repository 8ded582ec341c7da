package wire

// builder makes unstructured values of the JSON that its scanner reads. It is used
// by one goroutine at a time.
type builder struct {
	scanner
	tables  *Tables
	sharing Sharing
	drop    *Drop

	members  []member // of the objects under way, the innermost last
	elements []any    // of the arrays under way
	scratch  []byte   // of the string under way, if it has escapes
}

// forget lets go of the document, so that a builder at rest keeps nothing alive.
func (b *builder) forget() {
	const enough = 4 << 10
	b.scanner = scanner{}
	b.drop = nil
	b.members = emptied(b.members, enough)
	b.elements = emptied(b.elements, enough)
	if cap(b.scratch) > enough {
		b.scratch = nil
	}
}

// emptied empties a stack on which a document that was given up may have left
// something. One that has grown beyond enough it gives up.
func emptied[E any](stack []E, enough int) []E {
	if cap(stack) > enough {
		return nil
	}
	clear(stack)
	return stack[:0]
}

// value is a decoded value with its hash: equal values have equal hashes. The hash
// is zero if there is no use in looking for an equal one, because something in the
// value has not been seen before.
type value struct {
	any  any
	hash uint64
}

const unseen = 0

// Hashes of values that have no content to hash.
const (
	hashNull uint64 = iota + 1
	hashTrue
	hashFalse
	hashObject
	hashArray
	hashInt
	hashFloat
)

// mix returns a hash of h followed by x.
func mix(h, x uint64) uint64 {
	if h == unseen || x == unseen {
		return unseen
	}
	h = (h ^ x) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}
