package packed

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// Tape is one object. It is read-only, and refers to its dictionary. The zero Tape is no object.
type Tape struct {
	dict *Dictionary
	data string
}

// decoder reads a tape. Its dictionary's lock is held for reading.
type decoder struct {
	dict *Dictionary
	data string
	pos  int
	head [headFields]span
	// labels and owners are the positions of these values; zero: there are none.
	labels, owners int
	root           int
	own            bool // values are decoded again, not shared with other tapes
}

// span is the extent of a value of the head; the name is a text without a tag.
type span struct{ start, end int }

// open returns a decoder at the value of the tape. The caller must call close.
func (t Tape) open() decoder {
	d := decoder{dict: t.dict, data: t.data}
	d.dict.mu.RLock()
	length, pos := uvarint(d.data, 0)
	d.head[headName] = span{pos, pos + length}
	d.pos = pos + length
	for field := headNamespace; field < headFields; field++ {
		start := d.pos
		d.skip()
		d.head[field] = span{start, d.pos}
	}
	d.labels, d.pos = uvarint(d.data, d.pos)
	d.owners, d.pos = uvarint(d.data, d.pos)
	d.root = d.pos
	if d.labels > 0 {
		d.labels += d.root - 1
	}
	if d.owners > 0 {
		d.owners += d.root - 1
	}
	return d
}

func (d *decoder) close() { d.dict.mu.RUnlock() }

// field returns a field of the head, which is empty if the object has none.
func (d *decoder) field(number int) string {
	at := d.head[number]
	if number == headName {
		return clone(d.data[at.start:at.end])
	}
	pos := d.pos
	d.pos = at.start
	text := d.string()
	d.pos = pos
	return text
}

// Size returns the number of bytes of the tape, without its dictionary.
func (t Tape) Size() int { return len(t.data) }

// IsZero reports whether t is no object.
func (t Tape) IsZero() bool { return t.dict == nil }

// Name returns the name of the metadata. It is empty if the object has none, or one that is no string.
func (t Tape) Name() string { return t.headField(headName) }

// Namespace is as Name.
func (t Tape) Namespace() string { return t.headField(headNamespace) }

// UID is as Name.
func (t Tape) UID() string { return t.headField(headUID) }

// ResourceVersion is as Name.
func (t Tape) ResourceVersion() string { return t.headField(headVersion) }

func (t Tape) headField(field int) string {
	if t.IsZero() {
		return ""
	}
	length, pos := uvarint(t.data, 0)
	if field == headName {
		return clone(t.data[pos : pos+length])
	}
	d := decoder{dict: t.dict, data: t.data, pos: pos + length}
	for before := headNamespace; before < field; before++ {
		d.skip()
	}
	d.dict.mu.RLock()
	defer d.close()
	return d.string()
}

// Content returns the content of the unstructured object. It is read-only: parts of it are shared with the content of
// other objects.
func (t Tape) Content() map[string]any {
	if t.IsZero() {
		return nil
	}
	d := t.open()
	defer d.close()
	content, _ := d.value().(map[string]any)
	return content
}

// OwnContent is Content without shared parts: the caller owns it.
func (t Tape) OwnContent() map[string]any {
	if t.IsZero() {
		return nil
	}
	d := t.open()
	defer d.close()
	d.own = true
	content, _ := d.value().(map[string]any)
	return content
}

// OwnerReferences returns the value of the owner references, and whether there is one.
func (t Tape) OwnerReferences() (value any, found bool) {
	if t.IsZero() {
		return nil, false
	}
	d := t.open()
	defer d.close()
	if d.owners == 0 {
		return nil, false
	}
	d.pos = d.owners
	return d.value(), true
}

// Field returns the value at a path of member names, and whether there is one. It reads no other value in full.
func (t Tape) Field(path ...string) (value any, found bool) {
	if t.IsZero() {
		return nil, false
	}
	d := t.open()
	defer d.close()
	if !d.enterAll(path) {
		return nil, false
	}
	return d.value(), true
}

// container is what comes before the content of a container.
type container struct {
	shape  []int // of an object with a shape
	object bool
	n      int
	keys   int // the position of the keys of an object without a shape
	end    int // the position after the container; zero: it is not known
}

// container consumes what comes before the content of a container. It reports false, and consumes nothing, if the
// value is no container.
func (d *decoder) container() (c container, ok bool) {
	begin, end := d.pos, 0
	tag := d.data[d.pos]
	if tag == tagSized {
		var size int
		size, d.pos = uvarint(d.data, d.pos+1)
		end = d.pos + size
		tag = d.data[d.pos]
	}
	d.pos++
	switch {
	case tagShape <= tag && tag < tagShape+shortShapes:
		c.shape, c.object = d.dict.keys[tag-tagShape], true
		c.n = len(c.shape)
	case tagArray <= tag && tag < tagArray+shortArrays:
		c.n = int(tag - tagArray)
	case tag == tagLongShape:
		c.shape, c.object = d.dict.keys[d.number()], true
		c.n = len(c.shape)
	case tag == tagLongArray:
		c.n = d.number()
	case tag == tagObject:
		c.n, c.object = d.number(), true
		c.keys = d.pos
		for range c.n {
			d.skipKey()
		}
	default:
		d.pos = begin
		return c, false
	}
	c.end = end
	return c, true
}

// number consumes a uvarint.
func (d *decoder) number() (n int) {
	n, d.pos = uvarint(d.data, d.pos)
	return n
}

// number64 consumes a uvarint that may not fit into an int.
func (d *decoder) number64() (n uint64) {
	n, d.pos = uvarint64(d.data, d.pos)
	return n
}

// take consumes n bytes.
func (d *decoder) take(n int) string {
	d.pos += n
	return d.data[d.pos-n : d.pos]
}

// key consumes a key of an object without a shape. The text may be a part of the tape.
func (d *decoder) key() string {
	n := d.number()
	if n&1 == 1 {
		return d.dict.words.text(n >> 1)
	}
	return d.take(n >> 1)
}

// keyOf returns key i of an object. D is at that key if the object has no shape, and moves to the next one.
func (d *decoder) keyOf(c *container, i int) string {
	if c.keys == 0 {
		return d.dict.words.text(c.shape[i])
	}
	return d.key()
}

func (d *decoder) skipKey() {
	if n := d.number(); n&1 == 0 {
		d.pos += n >> 1
	}
}

// value consumes a value.
func (d *decoder) value() any {
	if c, ok := d.container(); ok {
		if c.object {
			return d.object(c)
		}
		array := make([]any, c.n)
		for i := range array {
			array[i] = d.value()
		}
		return array
	}
	switch tag := d.data[d.pos]; {
	case tag < tagInt+shortInts:
		d.pos++
		return int64(tag)
	case tag < tagWord+shortWords:
		d.pos++
		return d.dict.words.boxed[tag-tagWord]
	case tag >= tagNearWord:
		return d.dict.words.boxed[d.nearWord()]
	case tag == tagLongWord:
		d.pos++
		return d.dict.words.boxed[d.number()]
	case tag == tagNull:
		d.pos++
		return nil
	case tag == tagTrue, tag == tagFalse:
		d.pos++
		return tag == tagTrue
	case tag == tagLongInt:
		n, after := varint(d.data, d.pos+1)
		d.pos = after
		return n
	case tag == tagWideInt:
		d.pos++
		return int64(binary.LittleEndian.Uint64([]byte(d.take(8)))) //nolint:gosec // the bits
	case tag == tagFloat:
		d.pos++
		return math.Float64frombits(binary.LittleEndian.Uint64([]byte(d.take(8))))
	case tag == tagValue:
		d.pos++
		if d.own {
			value := d.shared(d.number())
			value.own = true
			return value.value()
		}
		return d.dict.decoded(d.number())
	}
	return d.string()
}

// nearWord consumes a reference of two bytes to a word.
func (d *decoder) nearWord() (number int) {
	number = shortWords + int(d.data[d.pos]-tagNearWord)<<8 + int(d.data[d.pos+1])
	d.pos += 2
	return number
}

// shared returns a decoder at a value of the dictionary.
func (d *decoder) shared(number int) *decoder {
	return &decoder{dict: d.dict, data: d.dict.values.text(number)}
}

// follow moves to the value of the dictionary to which the value at pos refers, if it does.
func (d *decoder) follow() {
	if d.data[d.pos] == tagValue {
		d.pos++
		shared := d.shared(d.number())
		d.data, d.pos = shared.data, 0
	}
}

// object consumes the members of an object.
func (d *decoder) object(c container) map[string]any {
	object := make(map[string]any, c.n)
	keys := d.keysOf(c)
	for range c.n {
		name := keys.next()
		object[name] = d.value()
	}
	return object
}

// memberKeys are the keys of an object, one after the other.
type memberKeys struct {
	words *entries
	shape []int
	data  string
	pos   int // zero: the object has a shape
}

func (d *decoder) keysOf(c container) memberKeys {
	return memberKeys{words: &d.dict.words, shape: c.shape, data: d.data, pos: c.keys}
}

// next consumes a key, and returns a copy of it if it is a part of the tape.
func (k *memberKeys) next() string {
	if k.pos == 0 {
		name := k.words.text(k.shape[0])
		k.shape = k.shape[1:]
		return name
	}
	n, begin := uvarint(k.data, k.pos)
	if n&1 == 1 {
		k.pos = begin
		return k.words.text(n >> 1)
	}
	k.pos = begin + n>>1
	return clone(k.data[begin:k.pos])
}

// string consumes a string. It does not keep the tape in memory.
func (d *decoder) string() string {
	text, part := d.view()
	if part {
		return clone(text)
	}
	return text
}

// view consumes a string, and reports whether it is a part of the tape.
func (d *decoder) view() (text string, part bool) {
	tag := d.data[d.pos]
	d.pos++
	switch {
	case tagWord <= tag && tag < tagWord+shortWords:
		return d.dict.words.text(int(tag - tagWord)), false
	case tagText <= tag && tag < tagText+shortTexts:
		return d.take(int(tag - tagText)), true
	case tag >= tagNearWord:
		d.pos--
		return d.dict.words.text(d.nearWord()), false
	case tag == tagLongText:
		return d.take(d.number()), true
	case tag == tagLongWord:
		return d.dict.words.text(d.number()), false
	case tagHead <= tag && tag < tagHead+headFields:
		return d.field(int(tag - tagHead)), false
	case tag == tagPrefixed:
		return d.prefixed(), false
	}
	var scratch [64]byte
	return string(d.appendSpecial(scratch[:0], tag)), false
}

// isText reports whether the value at pos is a string.
func (d *decoder) isText() bool {
	switch tag := d.data[d.pos]; {
	case tagWord <= tag && tag < tagText+shortTexts, tagPrefixed <= tag && tag < tagHead+headFields:
		return true
	default:
		return tag == tagLongWord || tag == tagLongText || tag >= tagNearWord
	}
}

// prefixed consumes what follows the tag of a string with a prefix.
func (d *decoder) prefixed() string {
	word := d.dict.words.text(d.number())
	tag := d.data[d.pos]
	d.pos++
	var scratch [256]byte
	b := append(scratch[:0], word...)
	switch {
	case tagText <= tag && tag < tagText+shortTexts:
		b = append(b, d.take(int(tag-tagText))...)
	case tag == tagLongText:
		b = append(b, d.take(d.number())...)
	default:
		b = d.appendSpecial(b, tag)
	}
	return string(b)
}

const hexDigits = "0123456789abcdef"

func appendHexDigits(b []byte, content string) []byte {
	for i := range len(content) {
		b = append(b, hexDigits[content[i]>>4], hexDigits[content[i]&15])
	}
	return b
}

// appendSpecial consumes what follows the tag of a string of a special form, and appends the string.
func (d *decoder) appendSpecial(b []byte, tag byte) []byte {
	switch tag {
	case tagHex:
		return appendHexDigits(b, d.take(d.number()))
	case tagUUID:
		for i, group := range groups {
			if i > 0 {
				b = append(b, '-')
			}
			b = appendHexDigits(b, d.take((group.end-group.start)/2))
		}
		return b
	case tagTime:
		return time.Unix(int64(d.number64()), 0).UTC().AppendFormat(b, time.RFC3339) //nolint:gosec // as it was written
	case tagDigits:
		return strconv.AppendUint(b, d.number64(), 10)
	}
	panic("packed: a tape has an unknown tag") // only this package makes tapes
}

// skip consumes a value without reading it.
func (d *decoder) skip() {
	if c, ok := d.container(); ok {
		if c.end > 0 {
			d.pos = c.end
			return
		}
		for range c.n {
			d.skip()
		}
		return
	}
	tag := d.data[d.pos]
	d.pos++
	switch {
	case tag >= tagNearWord:
		d.pos++
	case tag < tagText, tag == tagNull, tag == tagTrue, tag == tagFalse, tagHead <= tag && tag < tagHead+headFields:
	case tag < tagText+shortTexts:
		d.pos += int(tag - tagText)
	case tag == tagFloat, tag == tagWideInt:
		d.pos += 8
	case tag == tagUUID:
		d.pos += 16
	case tag == tagLongText, tag == tagHex:
		n := d.number()
		d.pos += n
	case tag == tagPrefixed:
		d.number()
		d.skip()
	default: // a number
		d.number()
	}
}

// enterAll moves to the value at a path of member names, as enter does.
func (d *decoder) enterAll(path []string) bool {
	for _, name := range path {
		if !d.enter(name) {
			return false
		}
	}
	return true
}

// enter moves to the value of the member called name of the object at pos. It reports false if the value at pos is
// no object, or has no such member. If there are two, the last one counts.
func (d *decoder) enter(name string) bool {
	d.follow()
	c, ok := d.container()
	if !ok || !c.object {
		return false
	}
	found := -1
	keys := decoder{dict: d.dict, data: d.data, pos: c.keys}
	for i := range c.n {
		if keys.keyOf(&c, i) == name {
			found = i
		}
	}
	if found < 0 {
		return false
	}
	for range found {
		d.skip()
	}
	return true
}

// use marks the entries of the dictionary that the tape uses. An entry that is newer than u has no mark.
func (t Tape) use(u *usage) {
	d := t.open()
	defer d.close()
	for field := headNamespace; field < headFields; field++ {
		d.pos = d.head[field].start
		d.use(u)
	}
	d.pos = d.root
	d.use(u)
}

// use consumes a value, and marks the entries of the dictionary that it uses.
func (d *decoder) use(u *usage) {
	begin := d.pos
	if c, ok := d.container(); ok {
		d.useKeys(begin, &c, u)
		for range c.n {
			d.use(u)
		}
		return
	}
	tag := d.data[d.pos]
	switch {
	case tagWord <= tag && tag < tagWord+shortWords:
		mark(u.words, int(tag-tagWord))
	case tag >= tagNearWord:
		mark(u.words, d.nearWord())
		return
	case tag == tagLongWord, tag == tagPrefixed:
		number, _ := uvarint(d.data, d.pos+1) // what follows a prefix is no word
		mark(u.words, number)
	case tag == tagValue:
		number, _ := uvarint(d.data, d.pos+1)
		if mark(u.values, number) {
			d.shared(number).use(u)
		}
	}
	d.skip()
}

// useKeys marks the entries that the keys of a container use. It begins at begin.
func (d *decoder) useKeys(begin int, c *container, u *usage) {
	for _, word := range c.shape {
		mark(u.words, word)
	}
	if c.shape != nil {
		mark(u.shapes, d.shapeAt(begin))
	}
	if c.keys == 0 {
		return
	}
	keys := decoder{data: d.data, pos: c.keys}
	for range c.n {
		if n, _ := uvarint(keys.data, keys.pos); n&1 == 1 {
			mark(u.words, n>>1)
		}
		keys.skipKey()
	}
}

// shapeAt returns the number of the shape of the object at pos.
func (d *decoder) shapeAt(pos int) (number int) {
	if d.data[pos] == tagSized {
		_, pos = uvarint(d.data, pos+1)
	}
	if tag := d.data[pos]; tag != tagLongShape {
		return int(tag - tagShape)
	}
	number, _ = uvarint(d.data, pos+1)
	return number
}

// mark marks an entry, and reports whether it had no mark.
func mark(entries []bool, number int) (first bool) {
	if number >= len(entries) || entries[number] {
		return false
	}
	entries[number] = true
	return true
}
