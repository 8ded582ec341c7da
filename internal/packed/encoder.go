package packed

import (
	"encoding/binary"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// The fields of the head. Their values in the body are tagHead plus these numbers.
const (
	headName = iota
	headNamespace
	headUID
	headVersion
	headFields
)

// encoder makes one tape after the other. The methods that read JSON or content call begin for each container,
// then key and a value for each member or a value for each element, then end.
type encoder struct {
	dict *Dictionary
	scan *wire.Scanner
	// missing are the kind and apiVersion of an object that has neither. Named and empty say whether it has one of them, or one that
	// is empty.
	missing      metav1.TypeMeta
	named, empty bool

	out  []byte // the value so far
	keys []key  // of the objects that are being encoded, the innermost last
	text []byte // of the keys without a number
	head [headFields][]byte
	// labels and owners are the positions of these values in out; -1: there are none.
	labels, owners int
	scratch        []byte

	// guesses are the shapes of the last objects at each depth: the next one often has the same.
	guesses [16]guess
	depth   int
	// fresh is the number of texts so far that have not been met before: a value with one of them is not in the dictionary.
	fresh int
}

// guess is the shape that an object may have.
type guess struct {
	keys   []int
	number int
}

// key is a key of an object: a word, or else a text.
type key struct {
	word       int // -1: a text
	start, end int // of encoder.text
}

// reset prepares the encoder for an object.
func (e *encoder) reset(d *Dictionary) {
	e.dict = d
	e.out, e.keys, e.text = e.out[:0], e.keys[:0], e.text[:0]
	e.depth = 0
	e.missing, e.named, e.empty = metav1.TypeMeta{}, false, false
	e.guesses = [len(e.guesses)]guess{} // they may be of another dictionary
	e.resetHead()
}

// release drops the reference to the document, and buffers that are much larger than most objects require.
func (e *encoder) release() {
	const keep = 1 << 20
	e.scan = nil
	for _, buffer := range []*[]byte{&e.out, &e.text, &e.scratch} {
		if cap(*buffer) > keep {
			*buffer = nil
		}
	}
}

// resetHead is called at the beginning of the metadata. If there are two, the last one counts.
func (e *encoder) resetHead() {
	for i := range e.head {
		e.head[i] = e.head[i][:0]
	}
	e.labels, e.owners = -1, -1
}

// tape returns the finished tape.
func (e *encoder) tape() Tape {
	size := len(e.out) + 4*binary.MaxVarintLen32
	for _, field := range e.head {
		size += len(field) + binary.MaxVarintLen32
	}
	b := slices.Grow(e.scratch[:0], size)
	b = append(binary.AppendUvarint(b, uint64(len(e.head[headName]))), e.head[headName]...)
	b = e.appendString(b, e.head[headNamespace])
	for _, field := range e.head[headUID:] { // no two tapes have the same
		var special bool
		if b, special = appendSpecial(b, field); !special {
			b = appendText(b, field)
		}
	}
	b = binary.AppendUvarint(b, uint64(e.labels+1)) //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(e.owners+1)) //nolint:gosec // not negative
	b = append(b, e.out...)
	e.scratch = b
	return Tape{dict: e.dict, data: string(b)}
}

// beginObject begins an object, and returns the number of keys of the objects around it.
func (e *encoder) beginObject() (base int) {
	e.depth++
	return len(e.keys)
}

// key adds a key of the innermost object, whose keys begin at base.
func (e *encoder) key(name []byte, base int) {
	if e.depth < len(e.guesses) {
		guessed, i := e.guesses[e.depth].keys, len(e.keys)-base
		if i < len(guessed) && e.dict.words.text(guessed[i]) == string(name) {
			e.keys = append(e.keys, key{word: guessed[i]})
			return
		}
	}
	if number, ok := e.keyWord(name); ok {
		e.keys = append(e.keys, key{word: number})
		return
	}
	start := len(e.text)
	e.text = append(e.text, name...)
	e.keys = append(e.keys, key{word: -1, start: start, end: len(e.text)})
}

// endObject ends an object whose values begin at start, and whose keys are the last ones from base on.
func (e *encoder) endObject(start, base int) {
	keys := e.keys[base:]
	head := e.scratch[:0]
	if shape, ok := e.shape(keys); ok {
		head = appendNumbered(head, tagShape, tagLongShape, shape, shortShapes)
	} else {
		head = binary.AppendUvarint(append(head, tagObject), uint64(len(keys)))
		for _, k := range keys {
			if k.word >= 0 {
				head = binary.AppendUvarint(head, uint64(k.word)<<1|1) //nolint:gosec // not negative
				continue
			}
			text := e.text[k.start:k.end]
			head = append(binary.AppendUvarint(head, uint64(len(text))<<1), text...)
		}
	}
	for _, k := range keys {
		if k.word < 0 {
			e.text = e.text[:k.start]
			break
		}
	}
	e.keys = e.keys[:base]
	e.depth--
	e.scratch = head
	e.insert(start, head)
}

// shape returns the number of the shape with keys.
func (e *encoder) shape(keys []key) (number int, ok bool) {
	var last *guess
	if e.depth < len(e.guesses) {
		last = &e.guesses[e.depth]
		if last.keys != nil && slices.EqualFunc(keys, last.keys, func(k key, word int) bool { return k.word == word }) {
			return last.number, true
		}
	}
	text := e.scratch[:0]
	for _, k := range keys {
		if k.word < 0 {
			return 0, false
		}
		text = binary.AppendUvarint(text, uint64(k.word)) //nolint:gosec // not negative
	}
	e.scratch = text
	if len(text) > maxShape {
		return 0, false
	}
	number, ok, _ = e.dict.number(&e.dict.shapes, text, maxShapes, 2)
	if ok && last != nil {
		*last = guess{e.dict.keys[number], number}
	}
	return number, ok
}

// endArray ends an array of n elements, which begin at start.
func (e *encoder) endArray(start, n int) {
	e.scratch = appendNumbered(e.scratch[:0], tagArray, tagLongArray, n, shortArrays)
	e.insert(start, e.scratch)
}

// insert inserts the head of a container, and its size if it is large.
func (e *encoder) insert(start int, head []byte) {
	var sized [1 + binary.MaxVarintLen64]byte
	prefix := sized[:0]
	if size := len(e.out) - start + len(head); size >= sizedFrom {
		prefix = binary.AppendUvarint(append(prefix, tagSized), uint64(size)) //nolint:gosec // not negative
	}
	n := len(prefix) + len(head)
	end := len(e.out)
	e.out = slices.Grow(e.out, n)[:end+n]
	copy(e.out[start+n:], e.out[start:end])
	copy(e.out[start:], prefix)
	copy(e.out[start+len(prefix):], head)
	if e.labels >= start {
		e.labels += n
	}
	if e.owners >= start {
		e.owners += n
	}
}

// word returns the number of a word.
func (e *encoder) word(text []byte) (number int, ok bool) {
	if len(text) < minWord || len(text) > maxWord {
		return 0, false
	}
	number, ok, fresh := e.dict.number(&e.dict.words, text, maxWords, usesOf(len(text)))
	if fresh {
		e.fresh++
	}
	return number, ok
}

// keyWord returns the number of a word that is a key.
func (e *encoder) keyWord(text []byte) (number int, ok bool) {
	if len(text) < minKey || len(text) > maxWord {
		return 0, false
	}
	number, ok, fresh := e.dict.number(&e.dict.words, text, maxWords, 2)
	if fresh {
		e.fresh++
	}
	return number, ok
}

// share replaces the container that begins at start by a value of the dictionary, if it has one. Fresh is e.fresh at the
// beginning of the container.
func (e *encoder) share(start, fresh int) {
	content := e.out[start:]
	if e.fresh != fresh || len(content) < minValue || len(content) > maxValue {
		return
	}
	if number, ok, _ := e.dict.number(&e.dict.values, content, maxValues, usesOf(len(content))); ok {
		e.out = binary.AppendUvarint(append(e.out[:start], tagValue), uint64(number)) //nolint:gosec // not negative
	}
}

// string adds a string.
func (e *encoder) string(content []byte) { e.out = e.appendString(e.out, content) }

// appendString appends a string in its shortest form.
func (e *encoder) appendString(b, content []byte) []byte {
	if b, ok := appendSmall(b, content); ok {
		return b
	}
	if number, ok := e.word(content); ok {
		return appendWord(b, number)
	}
	if b, ok := appendDigits(b, content); ok {
		return b
	}
	if number, length := e.prefix(content); length > 0 {
		b = binary.AppendUvarint(append(b, tagPrefixed), uint64(number)) //nolint:gosec // not negative
		rest := content[length:]
		if b, ok := appendSpecial(b, rest); ok {
			return b
		}
		return appendText(b, rest)
	}
	return appendText(b, content)
}

// The lengths of texts that may have a prefix.
const minPrefixed, minPrefix, maxPrefixed, mostPrefixes = 12, 5, 512, 3

// prefix returns the number and the length of a word with which content begins. The length is 0 if there is none.
// A prefix ends with punctuation.
func (e *encoder) prefix(content []byte) (number, length int) {
	if len(content) < minPrefixed || len(content) > maxPrefixed {
		return 0, 0
	}
	tried := 0
	for i := min(len(content)-1, maxWord); i >= minPrefix && tried < mostPrefixes; i-- {
		if !punctuation[content[i-1]] {
			continue
		}
		tried++
		if number, ok := e.word(content[:i]); ok {
			return number, i
		}
	}
	return 0, 0
}

var punctuation = [256]bool{'-': true, '.': true, '/': true, ':': true, '_': true, '=': true, ' ': true, ',': true}

// appendSmall appends content if it is a time or a number, whose form is so short that it needs no word.
func appendSmall(b, content []byte) (_ []byte, ok bool) {
	n := len(content)
	if n == 20 && content[n-1] == 'Z' {
		return appendTime(b, content)
	}
	if n < 6 {
		return b, false
	}
	if value, ok := decimal(content); ok {
		return binary.AppendUvarint(append(b, tagDigits), value), true
	}
	return b, false
}

// appendSpecial appends content if it has a form that is shorter than its text.
func appendSpecial(b, content []byte) (_ []byte, ok bool) {
	if b, ok := appendSmall(b, content); ok {
		return b, true
	}
	return appendDigits(b, content)
}

// appendDigits appends content if it is a UUID, or consists of hexadecimal digits.
func appendDigits(b, content []byte) (_ []byte, ok bool) {
	n := len(content)
	if n == 36 && content[8] == '-' {
		if b, ok := appendUUID(b, content); ok {
			return b, true
		}
	}
	if n >= 8 && n%2 == 0 {
		return appendHex(b, content)
	}
	return b, false
}

// decimal returns the number that content is, if that has content as its text.
func decimal(content []byte) (value uint64, ok bool) {
	if len(content) > 18 || content[0] == '0' {
		return 0, false
	}
	for _, c := range content {
		if c < '0' || c > '9' {
			return 0, false
		}
		value = value*10 + uint64(c-'0')
	}
	return value, true
}

// nibbles are the values of lower-case hexadecimal digits; all others are invalid.
var nibbles = func() (values [256]byte) {
	for c := range values {
		values[c] = invalid
	}
	for i, c := range hexDigits {
		values[c] = byte(i) //nolint:gosec // below 16
	}
	return values
}()

const invalid = 0xff

// appendBytes appends the bytes of which content is the hexadecimal form. It returns false if there are none.
func appendBytes(b, content []byte) (_ []byte, ok bool) {
	for ; len(content) >= 2; content = content[2:] {
		high, low := nibbles[content[0]], nibbles[content[1]]
		if high|low == invalid {
			return b, false
		}
		b = append(b, high<<4|low)
	}
	return b, len(content) == 0
}

func appendHex(b, content []byte) (_ []byte, ok bool) {
	begin := len(b)
	b = binary.AppendUvarint(append(b, tagHex), uint64(len(content)/2)) //nolint:gosec // not negative
	if b, ok = appendBytes(b, content); !ok {
		return b[:begin], false
	}
	return b, true
}

// groups are the parts of a UUID, between which there are hyphens.
var groups = [5]struct{ start, end int }{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, 36}}

func appendUUID(b, content []byte) (_ []byte, ok bool) {
	begin := len(b)
	b = append(b, tagUUID)
	for _, group := range groups {
		if b, ok = appendBytes(b, content[group.start:group.end]); !ok || group.end < len(content) && content[group.end] != '-' {
			return b[:begin], false
		}
	}
	return b, true
}

// appendTime appends a time of RFC 3339 from 1970 on, in 20 characters. [time.Time.Format] writes it in the same way.
func appendTime(b, content []byte) (_ []byte, ok bool) {
	const form = "0000-00-00T00:00:00Z"
	for i, c := range content {
		if digit := form[i] == '0'; digit && (c < '0' || c > '9') || !digit && c != form[i] {
			return b, false
		}
	}
	two := func(at int) int { return int(content[at]-'0')*10 + int(content[at+1]-'0') }
	year, month, day, hour, minute, second := two(0)*100+two(2), two(5), two(8), two(11), two(14), two(17)
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if year < 1970 || t.Month() != time.Month(month) || t.Day() != day || hour > 23 || minute > 59 || second > 59 {
		return b, false
	}
	return binary.AppendUvarint(append(b, tagTime), uint64(t.Unix())), true //nolint:gosec // not negative
}
