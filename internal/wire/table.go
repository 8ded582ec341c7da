package wire

import (
	"math/rand/v2"
	"sync/atomic"
)

// table is a hash table of values that are likely to be decoded again. It has a fixed
// number of slots, so its size is bounded. A value can be in one of two slots; if both
// are taken, it replaces one of them. A value is stored when it is decoded for the
// second time: most values, such as UIDs, occur only once, and would replace useful
// ones. The table is safe for concurrent use and has no lock: if two goroutines store
// equal values at the same time, the only cost is a copy. Equal hashes do not mean
// equal values; the caller compares them.
type table[T any] struct {
	slots []slot[T] // the length is a power of two
}

// slot holds a value, and the mark of another value that has been decoded once.
type slot[T any] struct {
	value atomic.Pointer[T]
	mark  atomic.Uint32 // of value
	seen  atomic.Uint32 // mark of a value that has been decoded once
}

func newTable[T any](slots int) table[T] { return table[T]{slots: make([]slot[T], slots)} }

// markOf returns a part of hash that does not determine the slot. It is never zero:
// zero is the mark of an empty slot.
func markOf(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// pair returns the two slots that a value with hash can be in.
func (t *table[T]) pair(hash uint64) (first, second *slot[T]) {
	index := hash & uint64(len(t.slots)-1)
	return &t.slots[index], &t.slots[index^1]
}

// find returns the slot's value if the slot has mark. While another goroutine stores a
// value, mark and value may belong to different values.
func (s *slot[T]) find(mark uint32) *T {
	if s.mark.Load() != mark {
		return nil
	}
	return s.value.Load()
}

// again reports whether a value with hash, which is not in the table, has been decoded
// before. If not, again records its mark. The mark replaces one of the two at random:
// otherwise two values that alternate could replace each other's mark for ever.
func (t *table[T]) again(hash uint64) bool {
	first, second := t.pair(hash)
	mark := markOf(hash)
	if first.seen.Load() == mark || second.seen.Load() == mark {
		return true
	}
	either(first, second).seen.Store(mark)
	return false
}

// put stores value in one of the slots of hash and returns the previous value. Nil
// empties the slot.
func (t *table[T]) put(hash uint64, value *T) (old *T) {
	first, second := t.pair(hash)
	mark := markOf(hash)
	if value == nil {
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
	old = into.value.Swap(value)
	into.mark.Store(mark)
	return old
}

func either[T any](first, second *slot[T]) *slot[T] {
	if rand.Uint32()&1 == 0 { //nolint:gosec // it affects only the use of memory
		return first
	}
	return second
}
