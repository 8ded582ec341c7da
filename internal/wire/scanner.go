package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth limits the recursion. Deeper documents are left to client-go's decoder,
// whose limit is 10,000.
const maxDepth = 1000

// scanner reads JSON tokens from data and builds no values. Each method moves pos
// behind the token that it accepts. It returns false, and pos is undefined, if the
// data is not valid JSON by the rules of encoding/json, or is incomplete.
type scanner struct {
	data  []byte
	pos   int
	depth int // of the value at pos, in objects and arrays
}

// next moves to the next byte that is not white space, and returns that byte. At the
// end of the data it returns zero, which can't begin a token.
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

// take consumes c and white space before it. It returns false for another byte.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

// literal consumes word, which is true, false or null.
func (s *scanner) literal(word string) bool {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return false
	}
	s.pos += len(word)
	return true
}

// descend begins a level of nesting, and ascend ends it. descend returns false at
// maxDepth.
func (s *scanner) descend() bool {
	s.depth++
	return s.depth <= maxDepth
}

func (s *scanner) ascend() { s.depth-- }

// more consumes the token after a member or element: a comma, and then again is true,
// or the closing bracket.
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
	// plain means that the content is the string itself: valid UTF-8 without escapes.
	plain bool
}

// text consumes the string whose opening quote is at pos.
func (s *scanner) text() (t text, ok bool) {
	data, i := s.data, s.pos+1
	t = text{start: i, plain: true}
	ascii := true
	for {
		i += plainPrefix(data[i:])
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

// plainPrefix returns the length of a prefix of b that has only ASCII characters which
// mean themselves in a JSON string. It may stop up to 7 bytes early.
func plainPrefix(b []byte) int {
	n := 0
	for n+8 <= len(b) {
		if m := special(binary.LittleEndian.Uint64(b[n:])); m != 0 {
			return n + bits.TrailingZeros64(m)/8
		}
		n += 8
	}
	return n
}

// special returns zero if no byte of w is a quote, a backslash, a control character or
// outside of ASCII. Otherwise the lowest set bit of the result is in the first such
// byte; higher bits have no meaning.
func special(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (w-ones*' ')&^w | w) & highs
}

// escape returns the length of the escape sequence at the beginning of b, or zero if it
// is not valid.
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

// skip consumes a value of any type. A number out of the range of float64 is not
// valid.
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

// done reports whether only white space is left.
func (s *scanner) done() bool {
	s.next()
	return s.pos == len(s.data)
}
