package packed

import (
	"hash/maphash"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
)

// The bounds of a dictionary. A word, a shape or a value enters when it is met for the second time: most, such as
// UIDs, occur only once.
const (
	maxWords  = 1 << 16
	maxShapes = 1 << 12
	maxValues = 1 << 14
	maxBytes  = 8 << 20  // of all their texts
	maxTrees  = 16 << 20 // bytes of decoded values, about

	minWord, maxWord   = 3, 64       // bytes
	minValue, maxValue = 12, 4 << 10 // encoded bytes
	maxShape           = 128         // encoded bytes
)

// Dictionary has the words, shapes and values to which tapes refer by number. It only grows, and its size is
// bounded: when it is full, tapes have everything in full. A [Packer] then begins another one. A Dictionary is
// safe for concurrent use.
type Dictionary struct {
	mu     sync.RWMutex // held for one tape, or one new entry
	words  entries
	shapes entries
	values entries
	bytes  int

	boxed []any                  // the words
	keys  [][]int                // the words of each shape
	trees []*atomic.Pointer[any] // the values, decoded; nil until a tape is unpacked

	treeBytes atomic.Int64 // of the trees, about

	seed  maphash.Seed
	seen  atomic.Pointer[marks]
	tapes atomic.Int64 // made with it
}

// entries are texts, each with a number.
type entries struct {
	texts []string
	// slots are the numbers of the texts plus one, at the first free slot from their hash on; zero is a free slot.
	// At most half of the slots are in use.
	slots []uint32
}

const fewSlots = 64

func newEntries() entries { return entries{slots: make([]uint32, fewSlots)} }

// find returns the number of text.
func (e *entries) find(text []byte, hash uint64) (number int, ok bool) {
	mask := uint64(len(e.slots) - 1)
	for at := hash & mask; e.slots[at] != 0; at = (at + 1) & mask {
		if number = int(e.slots[at]) - 1; e.texts[number] == string(text) {
			return number, true
		}
	}
	return 0, false
}

// add adds text, which is not there, and returns its number. HashOf returns the hash of a text.
func (e *entries) add(text string, hashOf func(string) uint64) (number int) {
	number = len(e.texts)
	e.texts = append(e.texts, text)
	if 2*len(e.texts) <= len(e.slots) {
		e.put(number, hashOf(text))
		return number
	}
	e.slots = make([]uint32, 4*len(e.slots))
	for n, text := range e.texts {
		e.put(n, hashOf(text))
	}
	return number
}

// put puts a number into a free slot.
func (e *entries) put(number int, hash uint64) {
	mask := uint64(len(e.slots) - 1)
	at := hash & mask
	for e.slots[at] != 0 {
		at = (at + 1) & mask
	}
	e.slots[at] = uint32(number) + 1 //nolint:gosec // at most maxWords
}

// marks are hashes of texts that have been met once. A new mark replaces an old one.
type marks []atomic.Uint32

// The numbers of marks: a dictionary of few tapes is small.
const fewMarks, manyMarks, manyFrom = 1 << 10, 1 << 15, 64

// NewDictionary returns an empty dictionary.
func NewDictionary() *Dictionary {
	d := &Dictionary{seed: maphash.MakeSeed(), words: newEntries(), shapes: newEntries(), values: newEntries()}
	few := make(marks, fewMarks)
	d.seen.Store(&few)
	return d
}

// begin is called before each tape.
func (d *Dictionary) begin() {
	if d.tapes.Add(1) == manyFrom {
		many := make(marks, manyMarks)
		d.seen.Store(&many)
	}
}

// again reports whether a text with that hash has been met before, and marks it otherwise.
func (d *Dictionary) again(hash uint64) bool {
	seen := *d.seen.Load()
	mark, at := uint32(hash>>32)|1, &seen[hash&uint64(len(seen)-1)] //nolint:gosec // a part of the hash
	if at.Load() == mark {
		return true
	}
	at.Store(mark)
	return false
}

// number returns the number of text, which enters e, one of d's entries, when it is met for the second time. The
// caller holds d.mu for reading. Number may give it back for a while.
func (d *Dictionary) number(e *entries, text []byte, most int) (number int, ok bool) {
	hash := maphash.Bytes(d.seed, text)
	if number, ok = e.find(text, hash); ok || !d.again(hash) || len(e.texts) >= most || d.bytes+len(text) > maxBytes {
		return number, ok
	}
	d.mu.RUnlock()
	number = d.enter(e, text, hash)
	d.mu.RLock()
	return number, true
}

// enter adds text to e, unless it is there by now.
func (d *Dictionary) enter(e *entries, text []byte, hash uint64) (number int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if number, ok := e.find(text, hash); ok {
		return number
	}
	entry := string(text)
	number = e.add(entry, func(text string) uint64 { return maphash.String(d.seed, text) })
	d.bytes += len(text)
	switch e {
	case &d.words:
		d.boxed = append(d.boxed, entry)
	case &d.values:
		d.trees = append(d.trees, &atomic.Pointer[any]{})
	case &d.shapes:
		d.keys = append(d.keys, numbersOf(entry))
	}
	return number
}

// word returns the number of a word.
func (d *Dictionary) word(text []byte) (number int, ok bool) {
	if len(text) < minWord || len(text) > maxWord {
		return 0, false
	}
	return d.number(&d.words, text, maxWords)
}

// numbersOf returns the uvarints of text.
func numbersOf(text string) (numbers []int) {
	for pos := 0; pos < len(text); {
		var n int
		n, pos = uvarint(text, pos)
		numbers = append(numbers, n)
	}
	return numbers
}

// Size returns the number of bytes that the dictionary takes, about.
func (d *Dictionary) Size() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	const header = 16 // of a string
	size := d.bytes + 4*len(*d.seen.Load()) + 2*header*cap(d.boxed) + int(d.treeBytes.Load())
	for _, e := range []*entries{&d.words, &d.shapes, &d.values} {
		size += header*cap(e.texts) + 4*len(e.slots)
	}
	return size
}

// decoded returns a value. All tapes share it, as long as there is room for it. The caller holds d.mu for reading.
func (d *Dictionary) decoded(number int) any {
	tree := d.trees[number]
	if value := tree.Load(); value != nil {
		return *value
	}
	value := (&decoder{dict: d, data: d.values.texts[number]}).value()
	if size := sizeOf(value); d.treeBytes.Add(size) > maxTrees || !tree.CompareAndSwap(nil, &value) {
		d.treeBytes.Add(-size)
	}
	return value
}

// sizeOf returns the number of bytes that a decoded value takes, about. Words are not counted.
func sizeOf(value any) (size int64) {
	const boxed, slot = 16, 40 // a slot of a map has its key, its value, and a part of the map's head
	switch value := value.(type) {
	case map[string]any:
		size = 48
		if n := len(value); n > 0 {
			size += slot * int64(max(8, n+n/4))
		}
		for _, member := range value {
			size += sizeOf(member)
		}
	case []any:
		size = 24 + boxed*int64(len(value))
		for _, element := range value {
			size += sizeOf(element)
		}
	case string:
		size = boxed + int64(len(value))
	case int64, float64:
		size = 8
	}
	return size
}

// usage says which entries of a dictionary tapes use.
type usage struct{ words, shapes, values []bool }

// used returns how many entries the dictionary has, and how many of them tapes use. Tapes of other dictionaries
// don't count.
func (d *Dictionary) used(tapes iter.Seq[Tape]) (used, all int) {
	d.mu.RLock()
	u := usage{make([]bool, len(d.words.texts)), make([]bool, len(d.shapes.texts)), make([]bool, len(d.values.texts))}
	d.mu.RUnlock()
	for t := range tapes {
		if t.dict == d {
			t.use(&u)
		}
	}
	for _, entries := range [][]bool{u.words, u.shapes, u.values} {
		all += len(entries)
		for _, is := range entries {
			if is {
				used++
			}
		}
	}
	return used, all
}

// clone returns a text that does not keep the tape in memory.
func clone(text string) string { return strings.Clone(text) }
