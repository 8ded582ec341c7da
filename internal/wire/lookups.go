package wire

import "sync/atomic"

const (
	countedEvery = 16     // one of so many look-ups counts, at random
	uniqueAfter  = 64     // so many look-ups in a row that count and find nothing show that texts do not repeat
	lookupPlaces = 1 << 9 // the number of places in tables, by the names of members
)

// lookups are the look-ups of the texts at one place of objects. Some texts do not repeat, such as names and UIDs: a table never has them. If
// the look-ups find nothing, only those that count are made, until one of them finds its text. Nil lookups are always made. The price is one
// string more of a text that is at several places of an object, and in no other object: the table has not seen the first one. It is safe for
// concurrent use.
type lookups struct {
	misses atomic.Uint32 // in a row, of look-ups that count
}

// skip reports whether the next look-up is not made. Counts says whether it counts.
func (l *lookups) skip(counts bool) bool {
	return l != nil && !counts && l.misses.Load() >= uniqueAfter
}

// record records the result of a look-up.
func (l *lookups) record(counts, found bool) {
	switch {
	case l == nil || !counts:
	case !found:
		l.misses.Add(1)
	case l.misses.Load() > 0:
		l.misses.Store(0)
	}
}

// lookupsOf returns the lookups of the members whose name has that hash. Names may have one place in common.
func (t *tables) lookupsOf(hash uint64) *lookups {
	if hash == unseen {
		return nil
	}
	return &t.lookups[hash%lookupPlaces]
}

// counts reports whether the next look-up counts.
func (b *builder) counts() bool {
	b.random = b.random*1664525 + 1013904223
	return b.random>>16%countedEvery == 0
}

// intern returns the interned string with that content, and its hash. It returns nil if there is none, or not yet.
func (b *builder) intern(content []byte) (in *interned, hash uint64) {
	counts := b.counts()
	if b.lookups.skip(counts) {
		return nil, unseen
	}
	hash = hashOf(b.tables.seed, content)
	in = b.tables.strings.lookup(content, hash)
	b.lookups.record(counts, in != nil)
	return in, hash
}
