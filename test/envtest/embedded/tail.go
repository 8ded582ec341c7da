package embedded

import (
	"io"
	"strings"
	"sync"
)

// tailSize is the number of bytes of a log that are kept for error texts.
const tailSize = 4 << 10

// tail passes writes on, and keeps the last bytes. It is safe for concurrent use.
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
	_, _ = t.next.Write(p) // errors of the log are ignored
	return len(p), nil
}

// String returns the last bytes.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
