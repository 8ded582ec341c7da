// Package bell wakes any number of goroutines that wait for something to happen. It
// does not know what.
package bell

import "sync"

// Bell is rung when something has happened. Its zero value is ready, it is safe for
// concurrent use, and nothing of it blocks.
type Bell struct {
	mu   sync.Mutex
	next chan struct{} // nil: nobody waits
}

// Next returns a channel that closes when the bell is rung next. Whoever looks at what
// the bell is for must ask for the channel first.
func (b *Bell) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// Ring wakes all who wait.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
