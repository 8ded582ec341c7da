package wire

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// sizes are numbers of slots. Objects have more distinct strings than keys.
type sizes struct{ keys, strings, subtrees int }

// Tables begin small, since many programs read few objects: a client's tables use 64 KB. After
// smallFor bytes of data, large empty tables replace them, once. Empty, these use 0.6 MB, or 0.9 MB
// with subtrees; with the objects of a usual cluster, they use some MB. At most they use 13 MB, or
// 100 MB with subtrees, as TestTables_TakeNoMoreMemoryThanDocumented measures: maxInterned and
// maxSharedTotal limit that.
var (
	smallSizes = sizes{keys: 1 << 10, strings: 1 << 11, subtrees: 1 << 10}
	largeSizes = sizes{keys: 1 << 13, strings: 1 << 15, subtrees: 1 << 14}
)

const smallFor = 256 << 10

// Tables hold strings and subtrees that have been decoded before, for all decoders of
// one or more clients. Their size is bounded. They are safe for concurrent use.
type Tables struct {
	sharing  Sharing
	current  atomic.Pointer[tables]
	decoded  atomic.Int64 // bytes, until the tables are large
	builders sync.Pool    // of *builder
}

// tables are Tables of one size.
type tables struct {
	large    bool
	seed     maphash.Seed
	keys     *stringTable
	strings  *stringTable
	subtrees *subtreeTable         // nil: the tables are for Own only
	lookups  [lookupPlaces]lookups // of texts, by the names of members

	emptyObject, emptyArray any // shared
}

// NewTables returns empty tables. Tables for Shared serve also decoders that use Own;
// tables for Own serve only these.
func NewTables(sharing Sharing) *Tables {
	t := &Tables{sharing: sharing}
	t.current.Store(newTables(sharing, smallSizes))
	t.builders.New = func() any { return &builder{random: rand.Uint32()} } //nolint:gosec // it affects only the use of memory
	return t
}

func newTables(sharing Sharing, size sizes) *tables {
	t := &tables{
		large:   size == largeSizes,
		seed:    maphash.MakeSeed(),
		keys:    newStringTable(size.keys),
		strings: newStringTable(size.strings),

		emptyObject: map[string]any{},
		emptyArray:  []any{},
	}
	if sharing {
		t.subtrees = newSubtreeTable(size.subtrees)
	}
	return t
}

// enter returns the tables for the next size bytes of data. A [Read] does not use them.
func (t *Tables) enter(size int, into Form) *tables {
	now := t.current.Load()
	if _, is := into.(Read); is || now.large || t.decoded.Add(int64(size)) <= smallFor {
		return now
	}
	t.current.CompareAndSwap(now, newTables(t.sharing, largeSizes))
	return t.current.Load()
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

// decode calls use, which reads about size bytes, with a builder at the beginning of data, and returns its result. The
// builder is not valid after use returns.
func (t *Tables) decode(data []byte, size int, s *Settings, use func(b *builder) bool) bool {
	b := t.builders.Get().(*builder)
	b.tables = t.enter(size, s.Into)
	b.scanner = scanner{data: data}
	b.sharing, b.drop, b.into = s.Sharing, s.Drop, s.Into
	ok := use(b)
	b.reset()
	t.builders.Put(b)
	return ok
}
