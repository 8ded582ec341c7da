// Package inflight counts calls in progress, and waits for their end. It does not know what the
// calls do.
package inflight

import "sync"

// Counter counts calls until it is closed. It is safe for concurrent use, and no method blocks.
// The zero value is open.
type Counter struct {
	mu     sync.Mutex
	calls  int
	closed bool
	done   chan struct{} // nil until Done is called, which most counters do not need
}

// Begin counts one more call, which ends with End. If the counter is closed, it reports false and
// does not count: the caller must not make the call.
func (c *Counter) Begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.calls++
	return true
}

// End is called at the end of each call for which Begin has reported true.
func (c *Counter) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls--
	c.endLocked()
}

// Close prevents further calls. It may be called again.
func (c *Counter) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	c.endLocked()
}

// endLocked closes the channel of Done, if the counter is closed and no call is in progress. The
// caller holds mu.
func (c *Counter) endLocked() {
	if c.closed && c.calls == 0 && c.done != nil {
		close(c.done)
	}
}

// Closed reports whether Close has been called.
func (c *Counter) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Done returns a channel that closes when the counter is closed and no call is in progress.
func (c *Counter) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		c.endLocked()
	}
	return c.done
}
