package source

import (
	"slices"
	"sync"
)

// firstPageBytes is the assumed size of a list before its first page has arrived.
const firstPageBytes = 1 << 20

// ListQueue limits the first lists in progress of all sources that share it. Lists begin in the order
// in which they join the queue. A list that makes no progress for a minute loses its turn to the next
// one and continues: a server that hangs for one type does not stop the others. It is safe for concurrent
// use, and no method blocks.
type ListQueue struct {
	lists int   // the maximum number of lists; 0: no limit
	bytes int64 // the maximum estimated size of lists; 0: no limit

	mu      sync.Mutex
	waiting []*turn // lists that have not begun, in order
	holding []*turn // lists that have their first page, and wait for the budget, in order
	begun   int     // the number of lists that have begun, including those in holding
	charged int64   // the estimated size of the lists that have begun
	closed  bool
}

// NewListQueue returns a queue for at most this number of lists at a time, with at most this estimated
// size in bytes. Zero or less means no limit. A list that is larger than bytes is alone. If there is no
// limit, the result is nil, which is a queue that never makes a list wait.
func NewListQueue(lists int, bytes int64) *ListQueue {
	if lists <= 0 && bytes <= 0 {
		return nil
	}
	return &ListQueue{lists: max(0, lists), bytes: max(0, bytes)}
}

// Close ends the queue: lists that wait do so until they leave it, even if others end. Sources that end together
// would begin the lists of others otherwise, which are then cut off.
func (q *ListQueue) Close() {
	if q != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.closed = true
	}
}

// hasBudget reports whether the size of lists is limited.
func (q *ListQueue) hasBudget() bool { return q != nil && q.bytes > 0 }

// join adds a list to the queue, at its end.
func (q *ListQueue) join() *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.insertLocked(len(q.waiting))
}

// rejoin adds a list that replaces one that has just had its turn. It is before the others.
func (q *ListQueue) rejoin() *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.insertLocked(0)
}

func (q *ListQueue) insertLocked(at int) *turn {
	t := &turn{queue: q, ready: make(chan struct{})}
	q.waiting = slices.Insert(q.waiting, at, t)
	q.admitLocked()
	return t
}

// admitLocked lets lists begin and continue. Lists that have begun are first. If all of them wait for the
// budget, the first one continues. The caller holds mu.
func (q *ListQueue) admitLocked() {
	if q.closed {
		return
	}
	for len(q.holding) > 0 {
		t := q.holding[0]
		if q.charged-t.charge+t.wants > q.bytes && len(q.holding) < q.begun {
			return
		}
		q.holding = slices.Delete(q.holding, 0, 1)
		q.chargeLocked(t, t.wants)
		t.runLocked()
	}
	for len(q.waiting) > 0 {
		full := q.lists > 0 && q.begun >= q.lists || q.bytes > 0 && q.charged+firstPageBytes > q.bytes
		if full && q.begun > 0 {
			return
		}
		t := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		t.begun = true
		q.begun++
		if q.bytes > 0 {
			q.chargeLocked(t, firstPageBytes)
		}
		t.runLocked()
	}
}

// holdLocked makes t, which has its first page, wait for the budget. The caller holds mu.
func (q *ListQueue) holdLocked(t *turn, wants int64) {
	t.wants, t.ready = wants, make(chan struct{})
	q.holding = append(q.holding, t)
	q.admitLocked()
}

// chargeLocked sets the part of the budget that t has. The caller holds mu.
func (q *ListQueue) chargeLocked(t *turn, bytes int64) {
	q.charged += bytes - t.charge
	t.charge = bytes
}

// removeLocked removes t, and lets others take its place. The caller holds mu.
func (q *ListQueue) removeLocked(t *turn) {
	isTurn := func(other *turn) bool { return other == t }
	if !t.begun {
		q.waiting = slices.DeleteFunc(q.waiting, isTurn)
	} else {
		q.holding = slices.DeleteFunc(q.holding, isTurn)
		q.begun--
		q.chargeLocked(t, 0)
	}
	q.admitLocked()
}
