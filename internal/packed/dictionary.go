package packed

import (
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
)

// The bounds of a dictionary. A key or a shape enters when it is met for the second time, a word or a value when it
// has been met so often that the entry takes less memory than the texts would. Most, such as UIDs, occur only once.
const (
	maxWords  = 1<<17 - 2 // a slot has room for the number plus one
	maxShapes = 1 << 12
	maxValues = 1 << 14
	maxBytes  = 8 << 20 // of all their texts
	maxTrees  = 1 << 20 // bytes of decoded values, about

	minKey             = 2           // bytes
	minWord, maxWord   = 3, 64       // bytes
	minValue, maxValue = 12, 4 << 10 // encoded bytes
	maxShape           = 128         // encoded bytes
)

// Dictionary has the words, shapes and values to which tapes refer by number. It only grows, and its size is
// bounded: when it is full, tapes have everything in full. [Packer.Renew] begins another one, if that has become worth it. A Dictionary is
// safe for concurrent use.
type Dictionary struct {
	mu     sync.RWMutex // held for one tape, or one new entry
	words  entries
	shapes entries
	values entries
	bytes  int // of their texts
	parts  int // bytes of the allocations for single entries, beside the texts

	keys  [][]int                // the words of each shape
	trees []*atomic.Pointer[any] // the values, decoded; nil until a tape is unpacked

	treeBytes atomic.Int64 // of the trees, about

	seed  maphash.Seed
	seen  atomic.Pointer[marks]
	tapes atomic.Int64 // made with it

	observer func(object any) // see Observe; nil: none
}

// entries are texts, each with a number.
type entries struct {
	texts []string
	boxed []any // the texts: unpacked objects share them
	// slots are the numbers of the texts plus one, with a part of their hash above them, at the first free slot from
	// their hash on; zero is a free slot. At most half of the slots are in use.
	slots []uint32
}

const (
	fewSlots   = 64
	numberBits = 17 // of a slot
	numberMask = 1<<numberBits - 1
)

func newEntries() entries { return entries{slots: make([]uint32, fewSlots)} }

// text returns the text with that number.
func (e *entries) text(number int) string { return e.texts[number] }

// find returns the number of text.
func (e *entries) find(text []byte, hash uint64) (number int, ok bool) {
	mask, tag := uint64(len(e.slots)-1), tagOf(hash)
	for at := hash & mask; ; at = (at + 1) & mask {
		slot := e.slots[at]
		if slot == 0 {
			return 0, false
		}
		if slot&^numberMask != tag {
			continue
		}
		if number = int(slot&numberMask) - 1; e.text(number) == string(text) {
			return number, true
		}
	}
}

// tagOf returns the part of hash that is in a slot.
func tagOf(hash uint64) uint32 { return uint32(hash>>32) &^ numberMask } //nolint:gosec // a part

// add adds text, which is not there, and returns its number. HashOf returns the hash of a text.
func (e *entries) add(text string, hashOf func(string) uint64) (number int) {
	number = len(e.boxed)
	e.texts, e.boxed = append(e.texts, text), append(e.boxed, text)
	if 2*len(e.boxed) <= len(e.slots) {
		e.put(number, hashOf(text))
		return number
	}
	e.slots = make([]uint32, 2*len(e.slots))
	for n := range e.boxed {
		e.put(n, hashOf(e.text(n)))
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
	e.slots[at] = tagOf(hash) | uint32(number+1) //nolint:gosec // at most maxWords
}

// marks count how often texts that are not in the dictionary have been met. A text's hash selects its mark, which has another part of
// the hash, and the count. A text that finds another text's mark reduces its count in half of all cases, and replaces
// the mark when the count is one.
type marks []atomic.Uint32

// countMask is the part of a mark that is the number.
const countMask = 1<<6 - 1

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

// again marks a text with that hash, and reports whether it has been met uses times, and whether it is fresh: not known to have
// been met before.
func (d *Dictionary) again(hash uint64, uses int) (enough, fresh bool) {
	seen := *d.seen.Load()
	tag, at := uint32(hash>>32)&^countMask, &seen[hash&uint64(len(seen)-1)] //nolint:gosec // a part of the hash
	now := at.Load()
	count := int(now & countMask)
	switch {
	case count > 0 && now&^countMask == tag:
		if count+1 >= uses {
			return true, false
		}
		at.Store(now + 1)
		return false, false
	case count > 0 && rand.Uint32()&1 == 0: //nolint:gosec // otherwise two texts that alternate would displace each other for ever
	case count > 1:
		at.Store(now - 1)
	default:
		at.Store(tag | 1)
	}
	return false, true
}

// usesOf returns how often a text of size bytes must have been met to enter: an entry takes more memory than its text, and
// a reference to it two or three bytes. It is likely to come again, so it may enter before it has saved memory.
func usesOf(size int) int { return max(2, min(1+(32+size)/(size-2), 8)) }

// number returns the number of text, which enters e, one of d's entries, when it is met often enough. Fresh is that of again. The
// caller holds d.mu for reading. Number may give it back for a while.
func (d *Dictionary) number(e *entries, text []byte, most, uses int) (number int, ok, fresh bool) {
	hash := maphash.Bytes(d.seed, text)
	if number, ok = e.find(text, hash); ok {
		return number, true, false
	}
	enough, fresh := d.again(hash, uses)
	if !enough || len(e.boxed) >= most || d.bytes+len(text) > maxBytes {
		return 0, false, fresh
	}
	d.mu.RUnlock()
	number, ok = d.enter(e, text, hash, most)
	d.mu.RLock()
	return number, ok, false
}

// enter adds text to e, unless it is there by now, or there is no room for it by now.
func (d *Dictionary) enter(e *entries, text []byte, hash uint64, most int) (number int, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if number, ok := e.find(text, hash); ok {
		return number, true
	}
	if len(e.boxed) >= most || d.bytes+len(text) > maxBytes {
		return 0, false
	}
	entry := string(text)
	number = e.add(entry, func(text string) uint64 { return maphash.String(d.seed, text) })
	d.bytes += len(text)
	d.parts += word // rounding
	switch e {
	case &d.values:
		d.trees = append(d.trees, &atomic.Pointer[any]{})
		d.parts += word
	case &d.shapes:
		numbers := numbersOf(entry)
		d.keys = append(d.keys, numbers)
		d.parts += word * cap(numbers)
	}
	return number, true
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

// The sizes of a word of memory, and of the head of a string, in bytes.
const word, header = 8, 16

// Size returns the number of bytes that the dictionary takes, about.
func (d *Dictionary) Size() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	size := d.bytes + d.parts + 4*len(*d.seen.Load()) + 3*word*cap(d.keys) + word*cap(d.trees) + int(d.treeBytes.Load())
	for _, e := range []*entries{&d.words, &d.shapes, &d.values} {
		size += header*(2*cap(e.boxed)+len(e.boxed)) + 4*len(e.slots)
	}
	return size
}

// decoded returns a value. All tapes share it, as long as there is room for it. The caller holds d.mu for reading.
func (d *Dictionary) decoded(number int) any {
	tree := d.trees[number]
	if value := tree.Load(); value != nil {
		return *value
	}
	value := (&decoder{dict: d, data: d.values.text(number)}).value()
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
	u := usage{make([]bool, len(d.words.boxed)), make([]bool, len(d.shapes.boxed)), make([]bool, len(d.values.boxed))}
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
