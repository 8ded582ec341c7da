// Package broadcast wakes all goroutines that wait for an event. It does not know the meaning
// of the event.
package broadcast

import "sync"

// Broadcaster announces events. Its zero value is ready, it is safe for concurrent use, and no
// method blocks.
type Broadcaster struct {
	mu   sync.Mutex
	next chan struct{} // nil: no goroutine waits
}

// Next returns a channel that closes at the next Broadcast. A caller must get the channel before
// it reads the state whose changes Broadcast announces.
func (b *Broadcaster) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// Broadcast wakes all goroutines that wait.
func (b *Broadcaster) Broadcast() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
