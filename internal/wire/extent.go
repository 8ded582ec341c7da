package wire

import "bytes"

// extent finds out whether a stream's next value has arrived whole, and looks at
// each byte once however small the pieces are that it arrives in. It does not
// parse: when it says complete, the value may still prove to be incomplete or
// invalid.
type extent struct {
	scanned  int
	depth    int
	inString bool
	escaped  bool
}

// depthLimit is how deep client-go's decoder lets JSON be nested.
const depthLimit = 10_000

type found int

const (
	incomplete found = iota
	complete
	invalid // no JSON object
)

// find looks at data, which begins with the value and is what the last call had,
// or more.
func (e *extent) find(data []byte) found {
	if len(data) > 0 && data[0] != '{' {
		return invalid
	}
	// API servers end each event with a newline, and have none within. Where that
	// does not hold, the value proves to be incomplete.
	if bytes.IndexByte(data[e.scanned:min(len(data), e.scanned+busyWindow)], '\n') >= 0 {
		return complete
	}
	for e.scanned < len(data) {
		if e.inString && !e.escaped {
			e.scanned += ordinary(data[e.scanned:])
			if e.scanned == len(data) {
				break
			}
		}
		c := data[e.scanned]
		e.scanned++
		if !e.step(c) {
			return invalid
		}
		if e.depth == 0 {
			return complete
		}
	}
	return incomplete
}

// step takes the next byte. It reports false if no JSON has it there.
func (e *extent) step(c byte) bool {
	switch {
	case e.escaped:
		e.escaped = false
	case e.inString:
		e.escaped = c == '\\'
		e.inString = c != '"'
		return c >= ' '
	case c == '"':
		e.inString = true
	case c == '{' || c == '[':
		e.depth++
		return e.depth <= depthLimit
	case c == '}' || c == ']':
		e.depth--
	default:
		return outside[c]
	}
	return true
}

// outside has the other bytes that occur outside of strings.
var outside = func() (set [256]bool) {
	for _, c := range " \t\r,:+-.0123456789Eaeflnrstu" {
		set[c] = true
	}
	return set
}()
