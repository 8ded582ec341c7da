package dynamicinformer

import (
	"slices"
	"time"
)

// Release gives the lease back. Its handlers are not called any more once Release has
// returned, but for calls that have begun, which Done waits for. The last release of an
// informer cancels its requests and forgets it at once, or after the longest linger; its
// cache can still be read. Release never blocks, and may be called again, which has no
// effect, and from the lease's own handlers.
func (l *Lease) Release() {
	if l.released.Swap(true) {
		return
	}
	added := l.handlers.Close()
	remove := func() {
		for _, registration := range added {
			_ = l.entry.informer.informer.RemoveEventHandler(registration)
		}
	}
	if done := l.factory.part(l, len(added) > 0); done != nil {
		go func() { // it may have to wait for the informer's locks
			defer done()
			remove()
		}()
	}
}

// part takes l from its entry, which ends if that was the last. If l has handlers that are
// to be removed from an informer that goes on, it returns what to call afterwards.
func (f *Factory) part(l *Lease, handlers bool) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := l.entry
	e.letGoLocked(l)
	defer e.changed.Broadcast()
	goesOn := len(e.leases) > 0 || e.pinned
	switch {
	case !goesOn && e.linger > 0 && !e.ending() && !closed(f.closing):
		e.lingers++
		n := e.lingers
		e.lingering = time.AfterFunc(e.linger, func() { f.expire(e, n) })
	case !goesOn:
		f.forgetLocked(e)
		return nil
	}
	switch {
	case !handlers || e.drained:
		return nil
	case e.started():
		e.errands.Add(1)
		return e.errands.Done
	case closed(f.closing):
		return nil
	}
	stray := make(chan struct{}) // somebody may run it by hand
	f.strays = append(slices.DeleteFunc(f.strays, closed), stray)
	return func() { close(stray) }
}

// expire forgets e, whose n-th linger is over, if nobody has come.
func (f *Factory) expire(e *entry, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.lingering != nil && e.lingers == n && len(e.leases) == 0 && !e.pinned {
		f.forgetLocked(e)
		e.changed.Broadcast()
	}
}

// stopLingerLocked keeps an entry that somebody has again. The caller holds the factory's mu.
func (e *entry) stopLingerLocked() {
	if e.lingering != nil {
		e.lingering.Stop()
		e.lingering = nil
	}
}

// forgetLocked ends e. The caller holds f.mu.
func (f *Factory) forgetLocked(e *entry) {
	e.forgotten = true
	e.stopLingerLocked()
	f.dropLocked(e)
	switch {
	case e.started():
		e.cancel()
	case !closed(e.done):
		close(e.done)
	}
}
