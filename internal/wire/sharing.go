package wire

import (
	"math"
	"reflect"
	"sync/atomic"
)

// Limits of the subtrees that a table keeps alive after the objects are gone.
const (
	maxSharedText  = 4 << 10  // JSON bytes of one subtree
	maxSharedTotal = 80 << 20 // bytes of memory of all
)

// The memory of values, in bytes.
const (
	numberSize = 8
	textSize   = 16 // without its content
)

// objectSize returns about the memory of an object with n members and of its subtree, without the members' keys and values.
func objectSize(n int) int {
	if n == 0 {
		return 0
	}
	const head, member, slot = 112, 32, 40 // a slot has a member, a control byte, and a part of what an allocation rounds up
	slots := 8
	for n > slots || slots > 8 && n > slots/8*7 { // only a map with eight slots can be full
		slots *= 2
	}
	return head + slots*slot + n*member
}

// arraySize returns the memory of an array with n elements and of its subtree, without the elements' values.
func arraySize(n int) int {
	if n == 0 {
		return 0
	}
	const head, element = 88, 16
	return head + n*element
}

// subtreeTable holds subtrees, so that equal subtrees of several objects become one map
// or slice. Its lookups compare contents, not only hashes.
type subtreeTable struct {
	table[subtree]
	held atomic.Int64 // memory of all subtrees in the table, in bytes
}

// subtree is an object or an array that is shared. It is never changed.
type subtree struct {
	size    int      // its memory, in bytes
	members []member // of an object, in the order of its JSON; keys are unique
	value   any      // map[string]any or []any
}

// member is a member of an object.
type member struct {
	key   string
	value any
}

func newSubtreeTable(slots int) *subtreeTable {
	return &subtreeTable{table: newTable[subtree](slots)}
}

// object returns the shared object that has exactly members, or nil.
func (t *subtreeTable) object(hash uint64, members []member) any {
	first, second := t.pair(hash)
	mark := markOf(hash)
	if s := first.find(mark); s != nil && s.hasMembers(members) {
		return s.value
	}
	if s := second.find(mark); s != nil && s.hasMembers(members) {
		return s.value
	}
	return nil
}

// array returns the shared array that has exactly elements, or nil.
func (t *subtreeTable) array(hash uint64, elements []any) any {
	first, second := t.pair(hash)
	mark := markOf(hash)
	if s := first.find(mark); s != nil && s.hasElements(elements) {
		return s.value
	}
	if s := second.find(mark); s != nil && s.hasElements(elements) {
		return s.value
	}
	return nil
}

// offer puts s into a slot of hash. If the table would exceed maxSharedTotal, it empties
// the slot instead, which makes room for later subtrees.
func (t *subtreeTable) offer(hash uint64, s *subtree) {
	if t.held.Add(int64(s.size)) > maxSharedTotal {
		t.held.Add(-int64(s.size))
		s = nil
	}
	if old := t.put(hash, s); old != nil {
		t.held.Add(-int64(old.size))
	}
}

// hasMembers reports whether s is an object that has exactly members.
func (s *subtree) hasMembers(members []member) bool {
	if len(s.members) != len(members) || len(members) == 0 {
		return false
	}
	for i := range members {
		if members[i].key != s.members[i].key || !same(members[i].value, s.members[i].value) {
			return false
		}
	}
	return true
}

// hasElements reports whether s is an array that has exactly elements.
func (s *subtree) hasElements(elements []any) bool {
	array, ok := s.value.([]any)
	return ok && sameElements(elements, array)
}

// same reports whether two decoded values are equal. 1 and 1.0 differ, and so do 0.0
// and -0.0.
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
		return false // == would panic
	}
	return a == b // nil, bool, int64
}

func sameMembers(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	if reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() {
		return true // already shared, as most are
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
