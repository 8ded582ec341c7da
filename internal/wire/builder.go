package wire

// builder builds unstructured values from the JSON that its scanner reads. It is not
// safe for concurrent use.
type builder struct {
	scanner
	tables  *tables
	sharing Sharing
	drop    *Drop
	below   *Drop    // of the value that a Struct fills next
	lookups *lookups // of the texts at the present place; nil: none
	random  uint32   // which look-ups count
	into    Form     // nil: unstructured
	scan    Scanner  // of into

	members  []member // of the objects that are being built, the innermost last
	elements []any    // of the arrays that are being built
	texts    []string // names and values of maps that are being built
	memory   int      // of the values that have been built, in bytes, about
	scratch  []byte   // the current string without escapes, if it had any
}

// reset drops all references to the document, so that an unused builder in the pool
// keeps no objects alive.
func (b *builder) reset() {
	const keep = 4 << 10 // capacity
	b.scanner, b.tables, b.memory = scanner{}, nil, 0
	b.drop, b.below, b.into, b.lookups = nil, nil, nil, nil
	b.scan.Reset(nil)
	b.members = emptied(b.members, keep)
	b.elements = emptied(b.elements, keep)
	b.texts = emptied(b.texts, keep)
	b.scratch, b.scan.scratch = emptied(b.scratch, keep), emptied(b.scan.scratch, keep)
}

// emptied returns stack without the elements that an incomplete document may have
// left. If its capacity is greater than keep, it returns nil.
func emptied[E any](stack []E, keep int) []E {
	if cap(stack) > keep {
		return nil
	}
	clear(stack)
	return stack[:0]
}

// value is a decoded value with its hash: equal values have equal hashes. The hash
// is unseen if a part of the value has not been decoded before: then no table has an
// equal value.
type value struct {
	any  any
	hash uint64
}

const unseen = 0

// Hashes of constants and empty values; the first value to mix for the others.
const (
	hashNull uint64 = iota + 1
	hashTrue
	hashFalse
	hashObject
	hashArray
	hashInt
	hashFloat
)

// mix returns the hash of h followed by x, unseen if one of them is unseen.
func mix(h, x uint64) uint64 {
	if h == unseen || x == unseen {
		return unseen
	}
	h = (h ^ x) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}
