package dynamicinformer

import "time"

// Release gives the lease back. Its handlers are not called any more once Release has
// returned, but for calls that have begun, which Done waits for. The last release of an
// informer cancels its requests and forgets it at once, or after the longest linger; its
// cache can still be read. Release never blocks, and may be called again, which has no
// effect, and from the lease's own handlers.
func (l *Lease) Release() {
	l.mu.Lock()
	if l.released {
		l.mu.Unlock()
		return
	}
	l.released = true
	handlers := l.handlers
	l.handlers = nil
	l.mu.Unlock()
	l.calls.close()
	remove := func() {
		for registration := range handlers {
			_ = l.entry.informer.informer.RemoveEventHandler(registration)
		}
	}
	switch l.factory.part(l, len(handlers) > 0) {
	case errandNow:
		remove()
	case errandLater: // it may have to wait for the informer's locks
		go func() {
			defer l.entry.errands.Done()
			remove()
		}()
	}
}

// errand is whether a lease's handlers are to be removed from an informer that goes on.
type errand int

const (
	noErrand errand = iota
	errandNow
	errandLater // and counted
)

// part takes l from its entry, which ends if that was the last, and says what is left to
// do if l has handlers.
func (f *Factory) part(l *Lease, handlers bool) errand {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := l.entry
	e.letGoLocked(l)
	e.changed.Ring()
	goesOn := len(e.leases) > 0 || e.pinned
	switch {
	case !goesOn && e.linger > 0 && !e.ending() && !closed(f.closing):
		e.lingers++
		n := e.lingers
		e.lingering = time.AfterFunc(e.linger, func() { f.expire(e, n) })
	case !goesOn:
		f.forgetLocked(e)
		return noErrand
	}
	switch {
	case !handlers || e.drained:
		return noErrand
	case !e.started(): // its locks are held by nobody for long
		return errandNow
	}
	e.errands.Add(1)
	return errandLater
}

// expire forgets e, whose n-th linger is over, if nobody has come.
func (f *Factory) expire(e *entry, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.lingering != nil && e.lingers == n && len(e.leases) == 0 && !e.pinned {
		f.forgetLocked(e)
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
	if f.entries[e.key] == e {
		delete(f.entries, e.key)
	}
	switch {
	case e.started():
		e.cancel()
	case !closed(e.done):
		close(e.done)
	}
}
