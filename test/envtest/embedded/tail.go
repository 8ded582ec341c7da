package embedded

import (
	"io"
	"strings"
	"sync"
)

// tailSize is how much of a log is kept for error texts.
const tailSize = 4 << 10

// tail passes what is written to it on, and keeps the end of it. It is safe for
// concurrent use.
type tail struct {
	next io.Writer

	mu   sync.Mutex // not held while writing to next
	last []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.last = append(t.last, p...)
	if over := len(t.last) - tailSize; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	t.mu.Unlock()
	_, _ = t.next.Write(p) // a log that can't be written is no failure of the server's
	return len(p), nil
}

// String returns what has been kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
