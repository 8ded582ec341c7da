package source

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// progressWithin is the maximum time without progress after which a list loses its turn.
	progressWithin = time.Minute
	// samples is the number of objects of a page whose size is measured.
	samples = 8
)

// turn is the turn of one list in a queue: the list waits, has begun, or has ended. A nil turn is that of
// a list that never waits. The goroutine that sends the list owns the turn, and leaves it.
type turn struct {
	queue *ListQueue
	last  atomic.Int64  // the Unix time of the last progress, in ns
	ready chan struct{} // closes when the list may begin or continue; only the owner and callers with the queue's mu use it

	// The fields below are guarded by the queue's mu.
	timer   *time.Timer // ends the turn; nil: the list has not begun
	begun   bool
	ended   bool
	charge  int64 // the part of the budget that the list has
	wants   int64 // the part that it waits for
	arrived int64 // the estimated size of the pages that have arrived
	sized   bool  // the list has waited for the budget, after a page that has shown its size
}

// waits reports whether the list must wait.
func (t *turn) waits() bool { return t != nil && !isClosed(t.ready) }

// leave ends the turn. It may be called again.
func (t *turn) leave() {
	if t == nil {
		return
	}
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	t.leaveLocked()
}

func (t *turn) leaveLocked() {
	if t.ended {
		return
	}
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.queue.removeLocked(t)
}

// runLocked lets a list begin or continue. The caller holds the queue's mu.
func (t *turn) runLocked() {
	t.progress()
	close(t.ready)
	if t.timer == nil {
		t.timer = time.AfterFunc(progressWithin, t.check)
		return
	}
	t.timer.Reset(progressWithin)
}

// progress records that a part of the list has arrived.
func (t *turn) progress() {
	if t != nil {
		t.last.Store(time.Now().UnixNano())
	}
}

// check ends the turn if the list has made no progress. A list that waits for the budget can make none.
func (t *turn) check() {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	if t.ended || slices.Contains(t.queue.holding, t) {
		return
	}
	left := progressWithin - time.Since(time.Unix(0, t.last.Load()))
	if left > 0 {
		t.timer.Reset(left)
		return
	}
	t.leaveLocked()
}

// page records a page of the list. With a budget, the size of the list is that of its first page and of the
// remaining objects, if these are as large. The list must then wait until waits reports false. If the server does
// not report the number of remaining objects, as for a list with a selector, the list has the size of the
// pages that have arrived. So has a set of namespaces: it is one list.
func (t *turn) page(list runtime.Object) {
	if t == nil {
		return
	}
	t.progress()
	if !t.queue.hasBudget() {
		return
	}
	content, err := meta.ListAccessor(list)
	if err != nil {
		return
	}
	size := sizeOf(list)
	if content.GetContinue() == "" {
		t.arrive(size)
		return
	}
	var rest float64 // a server may report any number
	if remaining, objects := content.GetRemainingItemCount(), meta.LenList(list); remaining != nil && objects > 0 {
		rest = float64(size) / float64(objects) * float64(max(0, *remaining))
	}
	t.resize(size, size+int64(min(rest, float64(t.queue.bytes))))
}

// arrive records the size of a last page. Another namespace may follow.
func (t *turn) arrive(page int64) {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.ended {
		return
	}
	t.arrived += page
	q.chargeLocked(t, max(t.charge, min(t.arrived, q.bytes)))
}

// resize records a page with its size and the estimated size of this page and all later ones. A list that is
// larger than the budget wants all of it.
func (t *turn) resize(page, total int64) {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.ended {
		return
	}
	wants := min(t.arrived+total, q.bytes)
	t.arrived += page
	if t.sized { // the list uses the memory already
		q.chargeLocked(t, max(t.charge, wants))
		return
	}
	t.sized = page > 0
	q.chargeLocked(t, min(t.arrived, wants))
	q.holdLocked(t, wants)
}

// sizeOf estimates the size of a list's objects as JSON, from some of them.
func sizeOf(list runtime.Object) int64 {
	var bytes, measured int64
	objects, n := meta.LenList(list), 0
	every := max(1, objects/samples)
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if n%every == 0 {
			if text, err := json.Marshal(item); err == nil {
				bytes += int64(len(text))
				measured++
			}
		}
		n++
		return nil
	})
	return bytes / max(1, measured) * int64(objects)
}

// joinQueue returns the turn of the next list of t. A list that fills a gap does not wait. Again says that the list replaces a watch-list that had its
// turn.
func (g *gate) joinQueue(t Type, again bool) *turn {
	switch {
	case g.cfg.Queue == nil, g.known.filledWith(t):
		return nil
	case again:
		return g.cfg.Queue.rejoin()
	}
	return g.cfg.Queue.join()
}

// awaitTurn waits until a list of t may begin, and returns the present type with the channel that closes when it
// changes. If a list would be of no use, because the type or the view of the shard has changed or ctx has ended, it leaves turn
// and returns an error.
func (g *gate) awaitTurn(ctx context.Context, turn *turn, t Type, n news) (Type, <-chan struct{}, error) {
	defer g.dequeued()
	for turn.waits() {
		g.enqueued()
		select {
		case <-turn.ready:
		case <-n.changed:
		case <-n.reviewed:
			g.giveUp(turn)
			return t, n.changed, errGaveWay
		case <-ctx.Done():
			g.giveUp(turn)
			return t, n.changed, ctx.Err()
		}
		var now Type
		if now, n.changed = g.available.Current(); now.Serving != Served || !t.sameObjects(now) {
			g.giveUp(turn)
			return t, n.changed, errGaveWay
		}
		t = now
	}
	return t, n.changed, nil
}

// giveUp leaves turn without a list, and the room that was reserved for the list.
func (g *gate) giveUp(turn *turn) {
	turn.leave()
	g.account.Abandon()
}

// awaitRest records a page of a list, and waits until turn continues.
func (g *gate) awaitRest(ctx context.Context, turn *turn, page runtime.Object) error {
	turn.page(page)
	if !turn.waits() {
		return nil
	}
	g.enqueued()
	defer g.dequeued()
	return await(ctx, turn.ready)
}

// enqueued records that a list waits for its turn, and dequeued that it does not.
func (g *gate) enqueued() {
	if g.queued.Load() == nil {
		now := time.Now()
		g.queued.Store(&now)
		g.cfg.Observer.Completed()
	}
}

func (g *gate) dequeued() {
	if g.queued.Swap(nil) != nil {
		g.cfg.Observer.Completed()
	}
}
