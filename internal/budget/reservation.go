package budget

// Reservation is the part of one list in progress. A nil Reservation has no limit. Its methods are not called concurrently.
type Reservation struct {
	account *Account
	name    string
	whole   bool

	// The fields below are guarded by the budget's mu.
	held  int64
	least int64 // what the list was refused with before: it does not get less

	common int64 // the size of common that it needs
	begun  int64 // that when it began
	ended  bool
}

// Resize sets the estimate of the list. If it does not fit, the error is an [*OverError], and Resize has no effect.
func (r *Reservation) Resize(estimate int64) error {
	if r == nil {
		return nil
	}
	a := r.account
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if r.ended {
		return errClosed
	}
	return a.takeLocked(r, max(estimate, r.least))
}

// Refuse ends the reservation of a list whose estimate does not fit. The list needs the estimate when it is repeated.
func (r *Reservation) Refuse(estimate int64) {
	a := r.account
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if r.ended {
		return
	}
	a.endLocked(r)
	d := a.demands[r.name]
	if d == nil {
		a.budget.refusals++
		d = &demand{number: a.budget.refusals}
		a.demands[r.name] = d
	}
	d.needs, d.common, d.whole, d.again = max(estimate, r.least), max(a.common, r.common), r.whole, false
	a.budget.least = 0
	a.updateLocked()
}

// Move records that a part of the list, which adds to the cache, is in the cache now.
func (r *Reservation) Move(bytes int64) {
	if r == nil || r.whole {
		return
	}
	a := r.account
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if !r.ended {
		a.holdLocked(r, max(0, r.held-bytes))
		a.updateLocked()
	}
}

// End ends the reservation. Complete says that the objects of the list are in the cache; otherwise the list may be repeated. It may be called
// again.
func (r *Reservation) End(complete bool) {
	if r == nil {
		return
	}
	a := r.account
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if r.ended {
		return
	}
	a.endLocked(r)
	switch d := a.demands[r.name]; {
	case complete:
		delete(a.demands, r.name)
	case d != nil:
		d.again = true // it has failed for another reason, which the next attempt may end
	}
	a.updateLocked()
}

// Wait is the wait of some lists of an account.
type Wait struct {
	account *Account
	over    chan struct{}
	ended   bool // guarded by the budget's mu
}

// Await makes lists that were refused wait. The wait is over when there is room for one of them, which is then reserved until the list
// begins or [Account.Abandon] is called. Whole is that of [Account.Begin]. If one of names was not refused, or may begin in any case, the wait
// is over at once. The caller calls Leave.
func (a *Account) Await(whole bool, names ...string) *Wait {
	w := &Wait{account: a, over: make(chan struct{})}
	if a == nil {
		w.endLocked()
		return w
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if a.closed || len(names) == 0 {
		w.endLocked()
		return w
	}
	for _, name := range names {
		if d := a.demands[name]; d == nil || d.again || a.granted[name] != nil {
			w.endLocked()
			return w
		}
	}
	for _, name := range names {
		a.demands[name].whole, a.budget.least = whole, 0
		a.budget.queueLocked(&waiter{a, name, a.demands[name], w})
	}
	a.updateLocked()
	a.budget.admitLocked()
	return w
}

// Over returns a channel that closes when the wait is over.
func (w *Wait) Over() <-chan struct{} { return w.over }

// Leave ends the wait. It may be called again.
func (w *Wait) Leave() {
	if w.account == nil {
		return
	}
	w.account.budget.mu.Lock()
	defer w.account.budget.mu.Unlock()
	w.account.budget.leaveLocked(func(other *waiter) bool { return other.wait == w })
	w.endLocked()
}

// endLocked ends the wait for its caller, who holds the budget's mu.
func (w *Wait) endLocked() {
	if !w.ended {
		w.ended = true
		close(w.over)
	}
}
