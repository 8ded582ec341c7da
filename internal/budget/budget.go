package budget

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/gvrkit/gvrkit/status"
)

// Budget is the memory that all caches of its accounts together may have. It is safe for concurrent use.
type Budget struct {
	limit int64

	mu       sync.Mutex // held during calls of the functions of accounts
	used     int64      // the sum of the charges of all accounts
	reserved int64      // the part of used that is for lists in progress
	refusals uint64     // the number of lists that were refused, without repetitions
	waiting  []*waiter  // in the order of their first refusals
	least    int64      // no waiter needs less; zero: it is not known
}

// New returns a budget of limit bytes. If limit is zero or less, it returns nil: there is no limit.
func New(limit int64) *Budget {
	if limit <= 0 {
		return nil
	}
	return &Budget{limit: limit}
}

// Status returns the present state. It is zero for a nil budget.
func (b *Budget) Status() status.Budget {
	if b == nil {
		return status.Budget{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return status.Budget{Limit: b.limit, Caches: b.used - b.reserved, Lists: b.reserved, Waiting: len(b.waiting)}
}

// OverError is the error of a list that does not fit.
type OverError struct {
	// Needs is the estimated memory of the objects of the list, Used the memory that the budget has for something else, and Limit that of
	// the budget.
	Needs, Used, Limit int64
}

// Error implements error.
func (e *OverError) Error() string {
	return fmt.Sprintf("the cache would take about %s, and %s of the memory budget of %s are in use", text(e.Needs), text(e.Used), text(e.Limit))
}

// text returns a number of bytes as a text.
func text(bytes int64) string {
	const kib, mib = 1 << 10, 1 << 20
	if bytes < mib {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/kib)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/mib)
}

// waiter is a list that waits until there is room for what it needs.
type waiter struct {
	account *Account
	name    string
	*demand
	wait *Wait
}

// admitLocked reserves what the waiting lists need, as far as there is room, in order. A list that does not fit does not block those
// behind it. The caller holds mu.
func (b *Budget) admitLocked() {
	if len(b.waiting) == 0 || b.least > 0 && b.used+b.least > b.limit {
		return
	}
	b.least = math.MaxInt64
	var left []*waiter
	for _, w := range b.waiting {
		if w.account.grantLocked(w) {
			w.waits = false
			continue
		}
		left = append(left, w)
		b.least = min(b.least, w.account.needsLocked(w.demand))
	}
	b.waiting = left
}

// queueLocked makes w wait. The caller holds mu, and calls admitLocked.
func (b *Budget) queueLocked(w *waiter) {
	at, _ := slices.BinarySearchFunc(b.waiting, w.number, func(other *waiter, number uint64) int {
		if other.number < number {
			return -1
		}
		return 1
	})
	b.waiting = slices.Insert(b.waiting, at, w)
	w.waits = true
}

// leaveLocked removes the waiters for which is reports true. The caller holds mu.
func (b *Budget) leaveLocked(is func(*waiter) bool) {
	b.waiting = slices.DeleteFunc(b.waiting, func(w *waiter) bool {
		leaves := is(w)
		w.waits = w.waits && !leaves
		return leaves
	})
}
