package wire

import "bytes"

// extent finds out whether the next value of a stream has arrived completely. It
// looks at each byte once, also if the value arrives in many small pieces. It does not
// parse: after complete, the parser may still find that the value is incomplete or
// invalid.
type extent struct {
	scanned  int
	depth    int
	inString bool
	escaped  bool
}

// depthLimit is the greatest depth of JSON that client-go's decoder accepts.
const depthLimit = 10_000

type found int

const (
	incomplete found = iota
	complete
	invalid // not a JSON object
)

// find scans data, which begins with the value. The data of each call begins with the
// data of the previous call.
func (e *extent) find(data []byte) found {
	if len(data) > 0 && data[0] != '{' {
		return invalid
	}
	// API servers end each event with a newline, and there is none within an event.
	// If a stream has other newlines, the parser finds that the value is incomplete.
	if bytes.IndexByte(data[e.scanned:min(len(data), e.scanned+busyWindow)], '\n') >= 0 {
		return complete
	}
	for e.scanned < len(data) {
		if e.inString && !e.escaped {
			e.scanned += plainPrefix(data[e.scanned:])
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

// step processes the next byte. It returns false if JSON can't have c in this place.
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

// outside has the other bytes that JSON has outside of strings.
var outside = func() (set [256]bool) {
	for _, c := range " \t\r,:+-.0123456789Eaeflnrstu" {
		set[c] = true
	}
	return set
}()
