package source

import (
	"errors"
	"sync"
)

// errClosed is returned to a request that comes after its informer has ended.
var errClosed = errors.New("the informer has been stopped")

// calls counts the requests and streams under way, so that the end of an informer
// can wait for the last of them.
type calls struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// begin announces a call, which ends with wg.Done. wg.Add is under mu and only
// while not closed: nothing can be added once closeAndWait waits.
func (c *calls) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	c.wg.Add(1)
	return nil
}

func (c *calls) end() { c.wg.Done() }

func (c *calls) closeAndWait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
}

// over reports whether nothing can begin any more.
func (c *calls) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}
