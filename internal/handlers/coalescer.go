package handlers

import (
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// coalescer stands between an informer and a handler. It takes the informer's events at once, so that
// client-go's buffer, which has no limit, stays empty. It merges those that the handler has not got yet,
// and delivers them in a goroutine.
type coalescer struct {
	handler *handler
	logger  klog.Logger

	wake   chan struct{} // has a value if there may be a new event
	synced chan struct{} // closes when client-go's registration has synced, and each addition of the initial list has been delivered or merged

	mu       sync.Mutex
	pending  pending
	initial  int  // the number of additions of the initial list that are pending or being delivered
	complete bool // client-go's registration has synced: there are no more additions of the initial list
}

func newCoalescer(h *handler, logger klog.Logger) *coalescer {
	return &coalescer{
		handler: h, logger: logger, wake: make(chan struct{}, 1), synced: make(chan struct{}),
		pending: pending{limit: h.group.options.States, reduce: h.set.reducedEvent},
	}
}

// put adds an event. It does not wait for the handler.
func (c *coalescer) put(e event) {
	c.mu.Lock()
	if e.initial {
		c.initial++
	}
	merged, dropped := c.pending.add(e)
	c.doneLocked(dropped)
	c.handler.merged(merged) // before the event can be delivered: it would seem to wait at the end of that call
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // it will look
	}
}

// next returns the next event, if there is one.
func (c *coalescer) next() (event, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.next()
}

// discard removes all events of a handler that has been removed, or has ended.
func (c *coalescer) discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = pending{limit: c.pending.limit, reduce: c.pending.reduce}
}

// doneLocked records that additions of the initial list have been delivered or merged. The caller holds
// mu.
func (c *coalescer) doneLocked(additions int) {
	c.initial -= additions
	if c.complete && c.initial == 0 && !closed(c.synced) {
		close(c.synced)
	}
}

// run delivers events until stop closes, and waits for the last call. As in client-go, the events that are
// pending then are lost.
func (c *coalescer) run(stop <-chan struct{}) {
	var checking sync.WaitGroup
	defer checking.Wait()
	checking.Go(func() { c.check(stop) })
	for !closed(stop) {
		if e, some := c.next(); some {
			c.deliver(e)
			continue
		}
		select {
		case <-c.wake:
		case <-stop:
		}
	}
}

// check waits until client-go's registration has synced, also during a call of the handler. Then the
// coalescer has each addition of the initial list.
func (c *coalescer) check(stop <-chan struct{}) {
	select {
	case <-c.handler.own.HasSyncedChecker().Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.complete = true
		c.doneLocked(0)
	case <-stop:
	}
}

func (c *coalescer) deliver(e event) {
	c.call(e)
	if e.initial {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.doneLocked(1)
	}
}

// call calls the handler. A panic has the same effect as in client-go: it is logged, and ends the process
// unless utilruntime.ReallyCrash is false.
func (c *coalescer) call(e event) {
	defer utilruntime.HandleCrashWithLogger(c.logger)
	c.handler.deliver(e)
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
