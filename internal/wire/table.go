package wire

import (
	"math/rand/v2"
	"sync/atomic"
)

// table keeps things that may be met again. It is a fixed number of slots, so that
// it stays small whatever passes. A thing has a choice of two slots, and takes one
// over if both are taken. It takes two sightings for a thing to enter, since most
// on a server, such as UIDs, are never seen again and would only drive out the
// others. It is safe for concurrent use and has no lock: what two goroutines do at
// once costs at worst a copy. A hash says where to look, not what is there.
type table[T any] struct {
	slots []slot[T] // the length is a power of two
}

// slot has all that a thing which is new needs to look at in one place.
type slot[T any] struct {
	thing atomic.Pointer[T]
	mark  atomic.Uint32 // of thing
	seen  atomic.Uint32 // mark of a thing that was seen once
}

func newTable[T any](slots int) table[T] { return table[T]{slots: make([]slot[T], slots)} }

// markOf returns a part of hash that tells those in one slot apart. Zero is a slot
// that has seen nothing.
func markOf(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// pair returns the slots that a thing with hash may be in.
func (t *table[T]) pair(hash uint64) (first, second *slot[T]) {
	index := hash & uint64(len(t.slots)-1)
	return &t.slots[index], &t.slots[index^1]
}

// find returns the slot's thing if it has mark, or had when it was looked at: mark
// and thing may be of two things while another goroutine puts one in.
func (s *slot[T]) find(mark uint32) *T {
	if s.mark.Load() != mark {
		return nil
	}
	return s.thing.Load()
}

// again reports whether a thing with hash that is not in the table has been seen
// before, so that it is worth keeping. If not, it has been now. Which of two marks
// that gives way to is left to chance: two things that always come in turn would
// otherwise keep each other out for good.
func (t *table[T]) again(hash uint64) bool {
	first, second := t.pair(hash)
	mark := markOf(hash)
	if first.seen.Load() == mark || second.seen.Load() == mark {
		return true
	}
	either(first, second).seen.Store(mark)
	return false
}

// put puts thing into one of the slots of hash and returns what was there. Nil
// empties the slot.
func (t *table[T]) put(hash uint64, thing *T) (old *T) {
	first, second := t.pair(hash)
	mark := markOf(hash)
	if thing == nil {
		mark = 0
	}
	into := first
	switch {
	case first.mark.Load() == 0:
	case second.mark.Load() == 0:
		into = second
	default:
		into = either(first, second)
	}
	old = into.thing.Swap(thing)
	into.mark.Store(mark)
	return old
}

func either[T any](first, second *slot[T]) *slot[T] {
	if rand.Uint32()&1 == 0 { //nolint:gosec // nothing depends on it but memory
		return first
	}
	return second
}
