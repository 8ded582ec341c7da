package budget

import (
	"errors"
	"slices"
)

// errClosed is the error of a list whose account is closed.
var errClosed = errors.New("the informer has ended")

// Account is the part of one cache. A nil Account has no limit. It is safe for concurrent use.
//
// Lists have names: a cache may be filled by several lists. Each name has at most one list in progress.
type Account struct {
	budget *Budget
	size   func() (objects, common int64)

	// The fields below are guarded by the budget's mu.
	generation int
	closed     bool
	charge     int64 // the part of the budget's used
	reserved   int64 // the part of the budget's reserved
	own        int64 // the objects of the cache
	common     int64 // what they have in common, and what is not replaced by a list
	whole      int64 // the reservations of lists that replace the cache
	before     int64 // whole at the last update
	parts      int64 // the reservations of lists that add to the cache
	promised   int64 // the size of common that lists in progress need
	demands    map[string]*demand
	granted    map[string]*Reservation // of lists that have waited, and have not begun
	lists      map[*Reservation]struct{}
}

// demand is what a list needs that was refused.
type demand struct {
	number uint64 // in the order of first refusals
	needs  int64
	common int64 // the size of the account's common then
	whole  bool
	again  bool // the list begins whether there is room or not
	waits  bool // for room
}

// Account returns an account of a cache. Size returns the memory of the objects of the cache, and of what they have in common. It is called
// with a lock held: it must not block, and not call the budget.
func (b *Budget) Account(size func() (objects, common int64)) *Account {
	if b == nil {
		return nil
	}
	return &Account{
		budget: b, size: size, demands: map[string]*demand{}, granted: map[string]*Reservation{}, lists: map[*Reservation]struct{}{},
	}
}

// Update reads the size of the cache, which has changed.
func (a *Account) Update() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.updateLocked()
}

// Close ends the account: its cache does not count any more, and no list can begin. It may be called again.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.closed = true
	a.forgetLocked(func(string) bool { return true })
	for r := range a.lists {
		a.endLocked(r)
	}
	a.updateLocked()
}

// Begins begins a generation of the cache's type. The lists of another type say nothing about it.
func (a *Account) Begins(generation int) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if a.generation != generation {
		a.generation = generation
		a.forgetLocked(func(string) bool { return true })
		a.updateLocked()
	}
}

// Retain forgets the lists without these names, which will not begin again.
func (a *Account) Retain(names map[string]bool) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	a.forgetLocked(func(name string) bool { return !names[name] })
	a.updateLocked()
}

// Abandon takes back what is reserved for lists that have waited and have not begun: those with the names, or all if there are no names.
func (a *Account) Abandon(names ...string) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	for name, r := range a.granted {
		if len(names) == 0 || slices.Contains(names, name) {
			a.endLocked(r)
		}
	}
	a.updateLocked()
}

// Retry lets lists begin again although there is no room: their estimates may be out of date.
func (a *Account) Retry(names ...string) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	for _, name := range names {
		if d := a.demands[name]; d != nil {
			d.again = true
		}
	}
}

// Begin begins a list. Whole says that it replaces the objects of the cache; otherwise it adds to them. If the list was refused before and
// there is still no room, Begin returns an [*OverError]: the list must not be sent. The caller ends the reservation.
func (a *Account) Begin(name string, whole bool) (*Reservation, error) {
	if a == nil {
		return nil, nil
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if a.closed {
		return nil, errClosed
	}
	if r := a.granted[name]; r != nil {
		delete(a.granted, name)
		held := r.held
		a.holdLocked(r, 0)
		r.whole = whole
		a.holdLocked(r, held)
		a.updateLocked()
		return r, nil
	}
	a.updateLocked()
	r := &Reservation{account: a, name: name, whole: whole, begun: a.common}
	a.lists[r] = struct{}{}
	if d := a.demands[name]; d != nil && !d.again {
		a.budget.leaveLocked(func(w *waiter) bool { return w.account == a && w.name == name })
		d.whole = whole
		a.promiseLocked(r, d)
		if err := a.takeLocked(r, d.needs); err != nil {
			a.endLocked(r)
			a.updateLocked()
			return nil, err
		}
	}
	return r, nil
}

// takeLocked sets what r has reserved. If there is no room, it has no effect. The caller holds the budget's mu.
func (a *Account) takeLocked(r *Reservation, bytes int64) error {
	b := a.budget
	a.updateLocked()
	more := a.moreLocked(r, bytes)
	adds := more + max(0, a.common-r.begun) // the list adds to what objects have in common
	if adds > 0 && b.used+more > b.limit {
		over := &OverError{Needs: bytes, Used: b.used + a.moreLocked(r, 0), Limit: b.limit}
		if common := max(a.common, a.promised); r.whole {
			over.Needs, over.Used = over.Needs+common, over.Used-common
		}
		if r.whole && a.own >= a.whole-r.held {
			over.Used -= a.own // the list replaces them
		}
		return over
	}
	a.holdLocked(r, bytes)
	a.updateLocked()
	return nil
}

// moreLocked returns how much the charge grows if r has reserved bytes. The caller holds the budget's mu.
func (a *Account) moreLocked(r *Reservation, bytes int64) int64 {
	held := r.held
	a.holdLocked(r, bytes)
	more := a.valueLocked() - a.charge
	a.holdLocked(r, held)
	return more
}

// needsLocked returns how much the charge grows if the list with demand d begins. The caller holds the budget's mu.
func (a *Account) needsLocked(d *demand) int64 {
	promised := a.promised
	a.promised = max(promised, d.common)
	more := a.moreLocked(&Reservation{whole: d.whole}, d.needs)
	a.promised = promised
	return more
}

// promiseLocked makes r get at least what its list was refused with. The caller holds the budget's mu.
func (a *Account) promiseLocked(r *Reservation, d *demand) {
	r.least, r.common, r.begun = d.needs, d.common, max(a.common, d.common)
	a.promised = max(a.promised, d.common)
	a.budget.least = 0 // lists that wait may need less beside it
}

// grantLocked reserves what w needs, if there is room, and ends its wait. The caller holds the budget's mu.
func (a *Account) grantLocked(w *waiter) bool {
	if more := a.needsLocked(w.demand); more > 0 && a.budget.used+more > a.budget.limit {
		return false
	}
	r := &Reservation{account: a, name: w.name, whole: w.whole}
	a.promiseLocked(r, w.demand)
	a.lists[r], a.granted[w.name] = struct{}{}, r
	a.holdLocked(r, w.needs)
	a.chargeLocked()
	w.wait.endLocked()
	return true
}

// holdLocked sets what r has reserved, without the charge. The caller holds the budget's mu.
func (a *Account) holdLocked(r *Reservation, bytes int64) {
	if r.whole {
		a.whole += bytes - r.held
	} else {
		a.parts += bytes - r.held
	}
	r.held = bytes
}

// endLocked ends r, which may be nil or have ended. The caller holds the budget's mu, and calls updateLocked.
func (a *Account) endLocked(r *Reservation) {
	if r == nil || r.ended {
		return
	}
	a.holdLocked(r, 0)
	r.ended = true
	delete(a.lists, r)
	if r.common > 0 && r.common == a.promised {
		a.promised = 0
		for other := range a.lists {
			a.promised = max(a.promised, other.common)
		}
	}
	if a.granted[r.name] == r {
		delete(a.granted, r.name)
	}
}

// forgetLocked forgets the refused lists for whose names is reports true. The caller holds the budget's mu, and calls updateLocked.
func (a *Account) forgetLocked(is func(name string) bool) {
	for name := range a.demands {
		if is(name) {
			delete(a.demands, name)
			a.endLocked(a.granted[name])
		}
	}
	a.budget.leaveLocked(func(w *waiter) bool {
		if w.account != a || !is(w.name) {
			return false
		}
		w.wait.endLocked()
		return true
	})
}

// waitsLocked reports whether a list waits; with whole, one that replaces the cache. The caller holds the budget's mu.
func (a *Account) waitsLocked(whole bool) bool {
	for _, d := range a.demands {
		if d.waits && (d.whole || !whole) {
			return true
		}
	}
	return false
}

// valueLocked returns what the account has now of the budget. The caller holds the budget's mu.
func (a *Account) valueLocked() int64 {
	return max(a.own, a.whole) + a.parts + max(a.common, a.promised)
}

// chargeLocked charges the budget. The caller holds the budget's mu.
func (a *Account) chargeLocked() {
	charge := a.valueLocked()
	reserved := charge - a.own - a.common
	a.budget.used += charge - a.charge
	a.budget.reserved += reserved - a.reserved
	a.charge, a.reserved = charge, reserved
}

// updateLocked reads the size of the cache, charges the budget, and lets others have what the account does not need any more. The caller
// holds the budget's mu.
func (a *Account) updateLocked() {
	before, own, common := a.charge, a.own, a.common
	a.own, a.common = 0, 0
	if !a.closed {
		a.own, a.common = a.size()
	}
	// A refused list may need less: one that replaces a cache that has grown, or any if there is more in common.
	less := (a.own > own || a.whole < a.before) && a.waitsLocked(true) || a.common > common && a.waitsLocked(false)
	if less {
		a.budget.least = 0
	}
	a.before = a.whole
	if a.chargeLocked(); less || a.charge < before {
		a.budget.admitLocked()
	}
}
