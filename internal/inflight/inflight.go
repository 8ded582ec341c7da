// Package inflight counts calls in flight, so that their end can be waited for. It does not know
// what the calls do.
package inflight

import "sync"

// Counter counts calls until it is closed. It is safe for concurrent use, and no method blocks.
// The zero value is open.
type Counter struct {
	mu     sync.Mutex
	calls  int
	closed bool
	done   chan struct{} // nil until Done is called: most counters end without
}

// Begin counts one more call, which ends with End. It reports false, and counts nothing, if the
// counter is closed: the call must not be made.
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

// Close lets no call begin any more. It may be called again.
func (c *Counter) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	c.endLocked()
}

// endLocked closes the channel that Done has returned, if it has, at the end. The caller holds mu.
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

// Done returns a channel that closes when the counter is closed and no call is in flight.
func (c *Counter) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		c.endLocked()
	}
	return c.done
}
