package wire

import (
	"math"
	"strconv"
)

// number is the extent of a number, and what the scanner has found out about it.
type number struct {
	start, end int
	whole      bool   // neither fraction nor exponent
	digits     int    // of the whole part
	value      uint64 // of the whole part; correct for at most safeDigits digits
}

// safeDigits is the number of decimal digits that always fit in a uint64.
const safeDigits = 19

// number consumes the number at pos.
func (s *scanner) number() (n number, ok bool) {
	data, i := s.data, s.pos
	n.start = i
	if i < len(data) && data[i] == '-' {
		i++
	}
	first := i
	for i < len(data) && isDigit(data[i]) {
		n.value = n.value*10 + uint64(data[i]-'0')
		i++
	}
	n.digits = i - first
	if n.digits == 0 || n.digits > 1 && data[first] == '0' {
		return n, false
	}
	if i, n.whole, ok = tail(data, i); !ok {
		return n, false
	}
	n.end, s.pos = i, i
	return n, true
}

// tail returns the end of a number whose whole part ends at i, and whether it has
// neither fraction nor exponent.
func tail(data []byte, i int) (end int, whole, ok bool) {
	whole = true
	if i < len(data) && data[i] == '.' {
		whole = false
		if i, ok = digits(data, i+1); !ok {
			return i, false, false
		}
	}
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		whole = false
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if i, ok = digits(data, i); !ok {
			return i, false, false
		}
	}
	return i, whole, true
}

// digits returns the end of the digits that begin at i. ok is false if there are none.
func digits(data []byte, i int) (end int, ok bool) {
	begin := i
	for i < len(data) && isDigit(data[i]) {
		i++
	}
	return i, i > begin
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// integer returns n if it is written as an integer and fits in an int64.
func (n number) integer(data []byte) (int64, bool) {
	switch {
	case !n.whole || n.digits > safeDigits:
		return 0, false
	case data[n.start] != '-':
		return int64(n.value), n.value <= math.MaxInt64 //nolint:gosec // checked
	default:
		return -int64(n.value), n.value <= 1<<63 //nolint:gosec // checked; 1<<63 is its own negative
	}
}

// any returns n as Kubernetes decodes it: an int64 if n is written as an integer and
// fits in one, else the nearest float64. It returns false if n is out of range for
// both.
func (n number) any(data []byte) (any, bool) {
	if i, ok := n.integer(data); ok {
		return i, true
	}
	return n.float(data)
}

// float returns the float64 nearest to n. It returns false if n is out of range.
func (n number) float(data []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(data[n.start:n.end]), 64)
	return f, err == nil
}

// inRange reports whether n is an int64 or in the range of float64.
func (n number) inRange(data []byte) bool {
	if n.whole && n.digits <= safeDigits {
		return true // any integer of this length is in the range of float64
	}
	_, ok := n.float(data)
	return ok
}
