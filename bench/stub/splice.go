package stub

import (
	"bytes"
	"strconv"

	"github.com/gvrkit/gvrkit/bench/objects"
)

// firstVersion is the version of the first object.
const firstVersion = 1_000_000_000

// updated returns a copy of an object's JSON as it is after an update that gave it
// the version: with the next generation, and its kind's counter counted up.
func updated(text []byte, kind objects.Kind, version int64) []byte {
	// The keys are sorted: metadata's generation and version come before all others.
	text = bytes.Clone(text)
	if at := valueAt(text, bytes.Index, "resourceVersion"); at >= 0 {
		copy(text[at+1:], objects.FormatResourceVersion(version))
	}
	if counter := kind.Counter; len(counter) > 0 {
		text = increment(text, valueAt(text, bytes.LastIndex, counter[len(counter)-1]))
	}
	return increment(text, valueAt(text, bytes.Index, "generation"))
}

// valueAt returns where the value of a key begins, or -1 if there is none.
func valueAt(text []byte, index func(s, sep []byte) int, key string) int {
	mark := `"` + key + `":`
	at := index(text, []byte(mark))
	if at < 0 {
		return -1
	}
	return at + len(mark)
}

// increment adds one to the whole number at a place in text. It changes text, and
// returns what may be a longer one.
func increment(text []byte, at int) []byte {
	if at < 0 {
		return text
	}
	end := at
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(text[at:end]), 10, 64)
	if err != nil {
		return text
	}
	digits := strconv.AppendInt(nil, n+1, 10)
	if len(digits) == end-at {
		copy(text[at:], digits)
		return text
	}
	return append(append(bytes.Clone(text[:at]), digits...), text[end:]...)
}
