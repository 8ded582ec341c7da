package wire

import (
	"hash/maphash"
	"sync"
)

// How many slots the tables have. Empty they take 0.6 MB a client, and 0.9 MB with
// subtrees; full of what clusters have, some MB. At worst they take 13 MB, and 100 MB
// with subtrees, as TestTables_TakeNoMoreMemoryThanDocumented measures: maxInterned and
// maxSharedTotal bound that. There are more strings on a server than keys.
const (
	keySlots     = 1 << 13
	stringSlots  = 1 << 15
	subtreeSlots = 1 << 14
)

// Tables is what the decoders of one client have in common: the strings and
// subtrees that came before. They are bounded, and safe for concurrent use.
type Tables struct {
	seed     maphash.Seed
	keys     *stringTable
	strings  *stringTable
	subtrees *subtreeTable // nil: for Own objects only
	builders sync.Pool     // of *builder

	emptyObject, emptyArray any // shared
}

// NewTables returns empty tables, for decoders that share subtrees or for such that
// don't.
func NewTables(sharing Sharing) *Tables {
	t := &Tables{
		seed:    maphash.MakeSeed(),
		keys:    newStringTable(keySlots),
		strings: newStringTable(stringSlots),

		emptyObject: map[string]any{},
		emptyArray:  []any{},
	}
	if sharing {
		t.subtrees = newSubtreeTable(subtreeSlots)
	}
	t.builders.New = func() any { return &builder{tables: t} }
	return t
}

// Sharing says whether equal subtrees of objects may be one map or slice.
type Sharing bool

// The two kinds of objects.
const (
	// Own objects have maps and slices of their own, as client-go's have.
	Own Sharing = false
	// Shared objects may have parts in common with others. Nobody may write to
	// anything below an object and its metadata: it would change other objects.
	Shared Sharing = true
)

// decode lends use a builder at the beginning of data, and takes it back. What use
// reports is returned.
func (t *Tables) decode(data []byte, sharing Sharing, drop *Drop, use func(b *builder) bool) bool {
	b := t.builders.Get().(*builder)
	b.scanner = scanner{data: data}
	b.sharing, b.drop = sharing, drop
	ok := use(b)
	b.forget()
	t.builders.Put(b)
	return ok
}
