package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds the recursion. client-go's limit is 10,000; what is deeper than
// this goes to it.
const maxDepth = 1000

// scanner reads JSON tokens from data, of which it builds nothing. A method moves
// pos past what it accepts. It reports false, with pos anywhere, for what is no
// valid JSON by encoding/json's rules, or ends too early.
type scanner struct {
	data  []byte
	pos   int
	depth int // of the value at pos, in objects and arrays
}

// next moves to the next byte that is no white space and returns it, zero at the
// end. Zero begins no token.
func (s *scanner) next() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// take consumes c, and white space before it, if it comes next.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

// literal consumes word, one of true, false and null.
func (s *scanner) literal(word string) bool {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// descend counts one more level of nesting, ascend one less.
func (s *scanner) descend() bool {
	s.depth++
	return s.depth <= maxDepth
}

func (s *scanner) ascend() { s.depth-- }

// more consumes what follows a member or element: a comma, and there is another
// one, or the closing bracket.
func (s *scanner) more(closing byte) (again, ok bool) {
	switch s.next() {
	case ',':
		s.pos++
		return true, true
	case closing:
		s.pos++
		return false, true
	}
	return false, false
}

// key consumes a member's name and the colon.
func (s *scanner) key() (t text, ok bool) {
	if s.next() != '"' {
		return text{}, false
	}
	if t, ok = s.text(); !ok {
		return text{}, false
	}
	return t, s.take(':')
}

// text is the extent of a string's content, without the quotes.
type text struct {
	start, end int
	// plain says that the content is the string: no escapes, valid UTF-8.
	plain bool
}

// text consumes the string whose opening quote is at pos.
func (s *scanner) text() (t text, ok bool) {
	data, i := s.data, s.pos+1
	t = text{start: i, plain: true}
	ascii := true
	for {
		i += ordinary(data[i:])
		if i >= len(data) {
			return t, false
		}
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			t.end = i
			t.plain = t.plain && (ascii || utf8.Valid(data[t.start:i]))
			return t, true
		case c == '\\':
			n := escape(data[i:])
			if n == 0 {
				return t, false
			}
			t.plain = false
			i += n
		case c < ' ':
			return t, false
		case c >= utf8.RuneSelf:
			ascii = false
			for i < len(data) && data[i] >= utf8.RuneSelf {
				i++
			}
		default:
			i++
		}
	}
}

// ordinary returns how many bytes at the beginning of b, at least, are text that
// may stand in a string as it is.
func ordinary(b []byte) int {
	n := 0
	for n+8 <= len(b) {
		if m := unusual(binary.LittleEndian.Uint64(b[n:])); m != 0 {
			return n + bits.TrailingZeros64(m)/8
		}
		n += 8
	}
	return n
}

// unusual returns a word whose lowest set bit is in the first of w's bytes that is
// a quote, a backslash, a control character or not ASCII; zero if there is none.
// What is set above that bit means nothing.
func unusual(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (w-ones*' ')&^w | w) & highs
}

// escape returns the length of the escape sequence that b begins with, zero if it
// is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex4(b[2:]) < 0 {
			return 0
		}
		return 6
	}
	return 0
}

// skip consumes a value, whatever it is. A number beyond float64 is none.
func (s *scanner) skip() bool {
	switch c := s.next(); c {
	case '"':
		_, ok := s.text()
		return ok
	case '{':
		return s.skipObject()
	case '[':
		return s.skipArray()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		n, ok := s.number()
		return ok && n.inRange(s.data)
	}
}

func (s *scanner) skipObject() bool {
	s.pos++
	if !s.descend() {
		return false
	}
	again, ok := !s.take('}'), true
	for again && ok {
		if _, ok = s.key(); ok && s.skip() {
			again, ok = s.more('}')
		} else {
			return false
		}
	}
	s.ascend()
	return ok
}

func (s *scanner) skipArray() bool {
	s.pos++
	if !s.descend() {
		return false
	}
	again, ok := !s.take(']'), true
	for again && ok {
		if !s.skip() {
			return false
		}
		again, ok = s.more(']')
	}
	s.ascend()
	return ok
}

// done reports whether nothing but white space is left.
func (s *scanner) done() bool {
	s.next()
	return s.pos == len(s.data)
}
