package handlers

import (
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// coalescer stands between an informer and a handler. It takes the informer's events at once, so that
// client-go's buffer, which has no limit, stays empty. It merges those that the handler has not got yet,
// and delivers them in a goroutine.
type coalescer struct {
	handler *handler
	logger  klog.Logger
	// own is client-go's registration. It is set before the goroutine starts.
	own cache.ResourceEventHandlerRegistration

	wake   chan struct{} // has a value if there may be a new event
	ended  chan struct{} // closes after the last call
	synced chan struct{} // closes when own has synced, and each addition of the initial list has been delivered or merged

	mu       sync.Mutex
	pending  pending
	initial  int  // the number of additions of the initial list that are pending or being delivered
	complete bool // own has synced: there are no more additions of the initial list
	begun    bool // the goroutine has started, or will never start
}

func newCoalescer(h *handler, logger *klog.Logger) *coalescer {
	c := &coalescer{handler: h, logger: klog.Background(), wake: make(chan struct{}, 1), ended: make(chan struct{}), synced: make(chan struct{})}
	if logger != nil {
		c.logger = *logger
	}
	return c
}

// put adds an event. It does not wait for the handler.
func (c *coalescer) put(e event) {
	c.mu.Lock()
	if e.initial {
		c.initial++
	}
	merged, dropped := c.pending.add(e)
	c.doneLocked(dropped)
	c.mu.Unlock()
	c.handler.merged(merged)
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

// discard removes all events of a handler that has been removed.
func (c *coalescer) discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = pending{}
}

// doneLocked records that additions of the initial list have been delivered or merged. The caller holds
// mu.
func (c *coalescer) doneLocked(additions int) {
	c.initial -= additions
	if c.complete && c.initial == 0 && !closed(c.synced) {
		close(c.synced)
	}
}

// begin reports whether the goroutine must be started. It does so once.
func (c *coalescer) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.begun
	c.begun = true
	return first
}

// run delivers events until the informer has ended or the handler has been removed, and waits for the
// last call. As in client-go, the events that are pending then are lost.
func (c *coalescer) run() {
	defer close(c.ended)
	stop := stopOf(c.own)
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
	case <-c.own.HasSyncedChecker().Done():
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

// stopOf returns the channel that closes when client-go makes no more calls for a registration.
func stopOf(own cache.ResourceEventHandlerRegistration) <-chan struct{} {
	return own.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
