package wire

import (
	"math"
	"reflect"
	"sync/atomic"
)

// Bounds of what sharing keeps alive after the objects are gone.
const (
	maxSharedText  = 4 << 10 // JSON bytes of one subtree
	maxSharedTotal = 8 << 20 // JSON bytes of all; their maps take some five times that
)

// subtreeTable holds subtrees that may be met again, so that equal ones become one.
// It works as a stringTable does: a fixed number of slots, entry at the second
// sighting, no lock. A hash only says where to look: what is found is compared.
type subtreeTable struct {
	slots []subtreeSlot // the length is a power of two
	held  atomic.Int64  // JSON bytes of what the slots hold
}

type subtreeSlot struct {
	subtree atomic.Pointer[subtree]
	mark    atomic.Uint32 // of subtree
	seen    atomic.Uint32 // mark of a subtree that was seen once
}

// subtree is an object or an array that is shared. It is never changed.
type subtree struct {
	size    int      // of the JSON it came from, in bytes
	members []member // of an object, in the order in which they came; keys are unique
	value   any      // map[string]any or []any
}

// member is a member of an object.
type member struct {
	key   string
	value any
}

func newSubtreeTable(slots int) *subtreeTable {
	return &subtreeTable{slots: make([]subtreeSlot, slots)}
}

func (t *subtreeTable) slot(hash uint64) *subtreeSlot { return &t.slots[hash&uint64(len(t.slots)-1)] }

// find returns the subtree with hash, or one that has its mark in common; nil if
// there is neither.
func (s *subtreeSlot) find(hash uint64) *subtree {
	if s.mark.Load() != markOf(hash) {
		return nil
	}
	return s.subtree.Load()
}

// object returns the shared object with members, nil if there is none.
func (t *subtreeTable) object(hash uint64, members []member) any {
	found := t.slot(hash).find(hash)
	if found == nil || len(found.members) != len(members) || len(members) == 0 {
		return nil
	}
	for i := range members {
		if members[i].key != found.members[i].key || !same(members[i].value, found.members[i].value) {
			return nil
		}
	}
	return found.value
}

// array returns the shared array with elements, nil if there is none.
func (t *subtreeTable) array(hash uint64, elements []any) any {
	found := t.slot(hash).find(hash)
	if found == nil {
		return nil
	}
	if array, ok := found.value.([]any); ok && sameElements(elements, array) {
		return found.value
	}
	return nil
}

// again reports whether a subtree that was not found has been seen before, so that
// it is worth keeping.
func (t *subtreeTable) again(hash uint64) bool {
	seen, mark := &t.slot(hash).seen, markOf(hash)
	if seen.Load() == mark {
		return true
	}
	seen.Store(mark)
	return false
}

// offer puts s into the slot of hash. If the table holds enough, the slot is
// emptied instead, which makes room for later ones.
func (t *subtreeTable) offer(hash uint64, s *subtree) {
	mark := markOf(hash)
	if t.held.Add(int64(s.size)) > maxSharedTotal {
		t.held.Add(-int64(s.size))
		s, mark = nil, 0
	}
	slot := t.slot(hash)
	if old := slot.subtree.Swap(s); old != nil {
		t.held.Add(-int64(old.size))
	}
	slot.mark.Store(mark)
}

// same reports whether two decoded values are equal, and not only as numbers: 1 and
// 1.0 differ, and so do 0.0 and -0.0.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && sameMembers(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && sameElements(a, b)
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case string:
		b, ok := b.(string)
		return ok && a == b
	}
	switch b.(type) {
	case map[string]any, []any:
		return false // which == can't compare
	}
	return a == b // nil, bool, int64
}

func sameMembers(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
		return true // shared already, as most are
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || !same(value, other) {
			return false
		}
	}
	return true
}

func sameElements(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}
