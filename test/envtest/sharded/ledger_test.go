package sharded_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// ledger has what was written to the server, and what members have handled. A member waits for the answer of the ledger when the handling of
// an object begins and when it ends, so that the ledger has the order of events of different members.
type ledger struct {
	mu         sync.Mutex
	numbers    []types.UID            // of the objects, by their numbers
	written    map[types.UID]string   // the version of the last write to each object that exists
	handled    map[types.UID]string   // the version that was handled last
	open       map[types.UID]string   // the members that handle objects now
	held       map[string]*held       // by the member
	suspended  map[string][]types.UID // what a member handled when it was stopped
	began      map[string]int         // the number of handlings that a member has begun
	violations []string
}

// held is a member whose handling of an object may not begin.
type held struct {
	reached chan struct{} // closes when the member waits
	resume  chan struct{} // closes when it may go on
	uid     types.UID     // of the object; set before reached closes
}

func newLedger(objects int) *ledger {
	return &ledger{
		numbers: make([]types.UID, objects), written: map[types.UID]string{}, handled: map[types.UID]string{}, open: map[types.UID]string{},
		held: map[string]*held{}, suspended: map[string][]types.UID{}, began: map[string]int{},
	}
}

// wrote records a write. Writes of one object are recorded in their order.
func (l *ledger) wrote(number int, uid types.UID, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.numbers[number] = uid
	l.written[uid] = version
}

// numbered returns the UID of the object with a number.
func (l *ledger) numbered(n int) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.numbers[n]
}

// deletes records that an object will be deleted.
func (l *ledger) deletes(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.written, uid)
}

// checkDeleted checks an event of a member, that an object was deleted.
func (l *ledger) checkDeleted(member string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if version, exists := l.written[uid]; exists {
		l.violateLocked("%s gets a deletion of %s, which exists in version %s", member, uid, version)
	}
}

// last returns the versions of the last writes to the objects that exist.
func (l *ledger) last() map[types.UID]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.written)
}

// forget forgets what was handled. No member runs.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.handled)
}

// begin records that member begins to handle an object. If the channel is not nil, the member waits for it before it acts.
func (l *ledger) begin(member string, uid types.UID) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other, is := l.open[uid]; is {
		l.violateLocked("%s begins to handle %s while %s handles it", member, uid, other)
	}
	l.open[uid] = member
	l.began[member]++
	h := l.held[member]
	if h == nil {
		return nil
	}
	delete(l.held, member)
	h.uid = uid
	close(h.reached)
	return h.resume
}

// end records that member has handled a version of an object, unless it was stopped meanwhile.
func (l *ledger) end(member string, uid types.UID, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(l.suspended[member], uid); at >= 0 {
		l.suspended[member] = slices.Delete(l.suspended[member], at, at+1)
		return
	}
	if l.open[uid] != member {
		l.violateLocked("%s has handled %s, which it has not begun", member, uid)
	}
	delete(l.open, uid)
	l.handled[uid] = version
}

// hold makes the next handling of member wait after its begin.
func (l *ledger) hold(member string) *held {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &held{reached: make(chan struct{}), resume: make(chan struct{})}
	l.held[member] = h
	return h
}

// stopped records that the process of member does not run any more, or for a while. What it handles has no effect from now on.
func (l *ledger) stopped(member string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, other := range l.open {
		if other == member {
			delete(l.open, uid)
			l.suspended[member] = append(l.suspended[member], uid)
		}
	}
}

// begun returns the number of handlings that member has begun.
func (l *ledger) begun(member string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began[member]
}

func (l *ledger) violateLocked(format string, args ...any) {
	l.violations = append(l.violations, fmt.Sprintf(format, args...))
}

func (l *ledger) violate(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violateLocked(format, args...)
}

// found returns the violations.
func (l *ledger) found() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.violations)
}

// unhandled returns the number of objects whose last version is not the one that was handled last, and one of them.
func (l *ledger) unhandled() (n int, example string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, version := range l.written {
		if l.handled[uid] != version {
			n++
			example = fmt.Sprintf("%s: written %s, handled %q", uid, version, l.handled[uid])
		}
	}
	return n, example
}
