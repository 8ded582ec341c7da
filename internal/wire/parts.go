package wire

import "hash/maphash"

// Texts is a table of strings, for decoders of other formats. It has short strings that have been decoded at least twice, as far as
// there is room. It is safe for concurrent use.
type Texts struct {
	seed  maphash.Seed
	table table[string]
}

// NewTexts returns an empty table. The number of slots is a power of two.
func NewTexts(slots int) *Texts {
	return &Texts{maphash.MakeSeed(), newTable[string](slots)}
}

// Text returns content as a string, which does not refer to content.
func (t *Texts) Text(content []byte) string {
	if len(content) == 0 || len(content) > maxInterned {
		return string(content)
	}
	hash := hashOf(t.seed, content)
	mark := markOf(hash)
	first, second := t.table.pair(hash)
	for _, s := range [...]*slot[string]{first, second} {
		if known := s.find(mark); known != nil && *known == string(content) {
			return *known
		}
	}
	text := string(content)
	if t.table.again(hash) {
		t.table.put(hash, &text)
	}
	return text
}

// Parts is a table of parts of objects by their bytes. It has parts of at most maxSharedText bytes that have
// been decoded at least twice, as far as there is room. It is safe for concurrent use.
type Parts[T any] struct {
	seed  maphash.Seed
	table table[part[T]]
}

// part is a part of objects that is shared. It is never changed.
type part[T any] struct {
	content string
	value   T
}

// NewParts returns an empty table. The number of slots is a power of two.
func NewParts[T any](slots int) *Parts[T] {
	return &Parts[T]{maphash.MakeSeed(), newTable[part[T]](slots)}
}

// Get returns the part with that content: the one in the table or, if there is none, the result of decode, which must not refer to
// content. Equal contents must have equal results.
func (p *Parts[T]) Get(content []byte, decode func(content []byte) (T, bool)) (value T, ok bool) {
	value, _, ok = p.get(content, decode)
	return value, ok
}

// get is Get. It also reports whether content has been decoded before, as far as the table knows.
func (p *Parts[T]) get(content []byte, decode func(content []byte) (T, bool)) (value T, again, ok bool) {
	if len(content) > maxSharedText {
		value, ok = decode(content)
		return value, false, ok
	}
	hash := hashOf(p.seed, content)
	mark := markOf(hash)
	first, second := p.table.pair(hash)
	for _, s := range [...]*slot[part[T]]{first, second} {
		if known := s.find(mark); known != nil && known.content == string(content) {
			return known.value, true, true
		}
	}
	value, ok = decode(content)
	if again = ok && p.table.again(hash); again {
		p.table.put(hash, &part[T]{string(content), value})
	}
	return value, again, ok
}
