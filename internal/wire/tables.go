package wire

import (
	"hash/maphash"
	"sync"
)

// Numbers of slots. Empty tables use 0.6 MB per client, or 0.9 MB with subtrees; with
// the objects of a usual cluster, they use some MB. At most they use 13 MB, or 100 MB
// with subtrees, as TestTables_TakeNoMoreMemoryThanDocumented measures: maxInterned and
// maxSharedTotal limit that. Objects have more distinct strings than keys.
const (
	keySlots     = 1 << 13
	stringSlots  = 1 << 15
	subtreeSlots = 1 << 14
)

// Tables hold strings and subtrees that have been decoded before, for all decoders of
// one or more clients. Their size is bounded. They are safe for concurrent use.
type Tables struct {
	seed     maphash.Seed
	keys     *stringTable
	strings  *stringTable
	subtrees *subtreeTable // nil: the tables are for Own only
	builders sync.Pool     // of *builder

	emptyObject, emptyArray any // shared
}

// NewTables returns empty tables. Tables for Shared serve also decoders that use Own;
// tables for Own serve only these.
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

// Sharing determines whether equal subtrees of objects may be one map or slice.
type Sharing bool

// The values of Sharing.
const (
	// Own gives each object maps and slices of its own, as client-go does.
	Own Sharing = false
	// Shared lets objects have parts in common. The program must not write to any
	// field except those of the object itself and of its metadata: a write would change
	// other objects.
	Shared Sharing = true
)

// decode calls use with a builder at the beginning of data, and returns its result. The
// builder is not valid after use returns.
func (t *Tables) decode(data []byte, sharing Sharing, drop *Drop, use func(b *builder) bool) bool {
	b := t.builders.Get().(*builder)
	b.scanner = scanner{data: data}
	b.sharing, b.drop = sharing, drop
	ok := use(b)
	b.reset()
	t.builders.Put(b)
	return ok
}
