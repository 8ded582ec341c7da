package packed

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A tape is a head and a value. A value is a tag and what follows it; numbers that follow are uvarints unless
// something else is said. The tags of common values have a small number in their low bits.
//
// A container, which is an object or an array, has its size in bytes behind its tag if it is sized: then a reader
// can pass over it at once. The keys of an object are a shape of the dictionary, or come before its values.
const (
	tagInt       = 0x00 // 0x00-0x3f: the integers 0 to 63
	tagWord      = 0x40 // 0x40-0x7f: the word of the dictionary with that number
	tagText      = 0x80 // 0x80-0x9f: the length of the text that follows
	tagShape     = 0xa0 // 0xa0-0xbf: the shape of an object, whose values follow
	tagArray     = 0xc0 // 0xc0-0xcf: the length of an array, whose elements follow
	tagNull      = 0xd0
	tagTrue      = 0xd1
	tagFalse     = 0xd2
	tagLongInt   = 0xd3 // a varint
	tagFloat     = 0xd4 // 8 bytes
	tagLongWord  = 0xd5 // the number of a word
	tagLongText  = 0xd6 // a length, the text
	tagLongShape = 0xd7 // the number of a shape, the values
	tagSized     = 0xd8 // a size, then a container that has no other size
	tagLongArray = 0xd9 // a length, the elements
	tagObject    = 0xda // the number of members, all keys, the values
	tagValue     = 0xdb // the number of a value of the dictionary
	tagPrefixed  = 0xdc // the number of a word, then a text that follows it
	tagHex       = 0xdd // a length, bytes: two lower-case hexadecimal digits for each
	tagUUID      = 0xde // 16 bytes
	tagTime      = 0xdf // seconds since 1970: a time of RFC 3339 in UTC
	tagDigits    = 0xe0 // a decimal number without leading zeros, which is a text
	tagHead      = 0xe1 // 0xe1-0xe4: the name, namespace, UID, resourceVersion of the head
	tagWideInt   = 0xe5 // 8 bytes
	tagNearWord  = 0xe6 // 0xe6-0xff: the high byte of the number of a word, from shortWords on; then the low byte

	shortInts, shortWords, shortTexts, shortShapes, shortArrays = 64, 64, 32, 32, 16
	nearWords                                                   = shortWords + (0x100-tagNearWord)<<8
)

// wideFrom is a number of bits: an integer with more is shorter as 8 bytes than as a varint.
const wideFrom = 56

// sizedFrom is the number of bytes from which a container is sized.
const sizedFrom = 48

// A key of an object without a shape is a uvarint: twice the number of a word plus one, or twice the length of
// the text that follows.

func appendInt(b []byte, i int64) []byte {
	if 0 <= i && i < shortInts {
		return append(b, tagInt|byte(i))
	}
	if bits.Len64(uint64(i<<1)^uint64(i>>63)) > wideFrom { //nolint:gosec // as a varint
		return binary.LittleEndian.AppendUint64(append(b, tagWideInt), uint64(i)) //nolint:gosec // the bits
	}
	return binary.AppendVarint(append(b, tagLongInt), i)
}

func appendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, tagFloat), math.Float64bits(f))
}

// appendNumbered appends a tag with a number, in one byte if the number is below short.
func appendNumbered(b []byte, tag, long byte, n, short int) []byte {
	if n < short {
		return append(b, tag|byte(n)) //nolint:gosec // it is small
	}
	return binary.AppendUvarint(append(b, long), uint64(n)) //nolint:gosec // not negative
}

// appendWord appends a reference to a word.
func appendWord(b []byte, number int) []byte {
	if number < shortWords || number >= nearWords {
		return appendNumbered(b, tagWord, tagLongWord, number, shortWords)
	}
	number -= shortWords
	return append(b, tagNearWord+byte(number>>8), byte(number)) //nolint:gosec // it fits
}

func appendText(b, text []byte) []byte {
	return append(appendNumbered(b, tagText, tagLongText, len(text), shortTexts), text...)
}

// uvarint returns the uvarint at pos of data, which is valid, and the position after it.
func uvarint(data string, pos int) (n, after int) {
	if c := data[pos]; c < 0x80 {
		return int(c), pos + 1
	}
	x, after := uvarint64(data, pos)
	return int(x), after //nolint:gosec // as it was written
}

// uvarint64 is uvarint for a number of an object, which may not fit into an int.
func uvarint64(data string, pos int) (x uint64, after int) {
	for shift := 0; ; shift += 7 {
		c := data[pos]
		pos++
		x |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return x, pos
		}
	}
}

// varint is uvarint64 for a signed number.
func varint(data string, pos int) (n int64, after int) {
	x, after := uvarint64(data, pos)
	return int64(x>>1) ^ -int64(x&1), after //nolint:gosec // zigzag
}
