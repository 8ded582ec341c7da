package child

import "strings"

// tailSize is how much of a child's log is kept for error texts.
const tailSize = 16 << 10

// tail keeps the end of what is written to it.
type tail struct{ last []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	if over := len(t.last) - tailSize; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.last)) }
