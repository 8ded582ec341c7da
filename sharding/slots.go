package sharding

import (
	"fmt"
	"iter"
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	apisharding "k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

// SlotCount is the number of slots. It is fixed: all members of a group must have the same slots.
const SlotCount = 256

// field is the field whose hash determines the slot of an object.
const field = "object.metadata.uid"

// slotWidth is the number of low bits of a hash that do not belong to the number of the slot.
const slotWidth = 64 - 8

// SlotOf returns the slot of an object: the highest 8 bits of the hash of its UID, which is FNV-1a with 64
// bits, as in the API server.
func SlotOf(uid types.UID) int {
	hash := uint64(14695981039346656037)
	for i := range len(uid) {
		hash = (hash ^ uint64(uid[i])) * 1099511628211
	}
	return int(hash >> slotWidth)
}

// Slots is a set of slots. It is a value: sets with equal slots are equal, and the zero value is the empty
// set.
type Slots struct{ words [SlotCount / 64]uint64 }

// allSlots returns the set of all slots.
func allSlots() (s Slots) {
	for i := range s.words {
		s.words[i] = ^uint64(0)
	}
	return s
}

// Has reports whether slot is in the set. A number that is not a slot is in no set.
func (s Slots) Has(slot int) bool {
	return slot >= 0 && slot < SlotCount && s.words[slot/64]&(1<<(slot%64)) != 0
}

// Len returns the number of slots in the set.
func (s Slots) Len() (n int) {
	for _, word := range s.words {
		n += bits.OnesCount64(word)
	}
	return n
}

// Empty reports whether the set has no slot.
func (s Slots) Empty() bool { return s == Slots{} }

// Equal reports whether both sets have the same slots, as == does. Packages that compare values call it.
func (s Slots) Equal(other Slots) bool { return s == other }

// All iterates over the slots in ascending order.
func (s Slots) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s.words {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// Union returns the slots that are in s or in other.
func (s Slots) Union(other Slots) Slots {
	for i := range s.words {
		s.words[i] |= other.words[i]
	}
	return s
}

// Minus returns the slots of s that are not in other.
func (s Slots) Minus(other Slots) Slots {
	for i := range s.words {
		s.words[i] &^= other.words[i]
	}
	return s
}

// Complement returns the slots that are not in s.
func (s Slots) Complement() Slots { return allSlots().Minus(s) }

// Intersect returns the slots that are in s and in other.
func (s Slots) Intersect(other Slots) Slots {
	for i := range s.words {
		s.words[i] &= other.words[i]
	}
	return s
}

func (s *Slots) add(slot int) { s.words[slot/64] |= 1 << (slot % 64) }

func (s *Slots) remove(slot int) { s.words[slot/64] &^= 1 << (slot % 64) }

// ranges iterates over the ranges of consecutive slots, from the first slot to the one after the last.
func (s Slots) ranges() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for from := 0; from < SlotCount; from++ {
			if !s.Has(from) {
				continue
			}
			to := from + 1
			for s.Has(to) {
				to++
			}
			if !yield(from, to) {
				return
			}
			from = to
		}
	}
}

// Selector returns a selector of the objects in the slots, for the field ShardSelector of ListOptions:
// shardRange(object.metadata.uid, '0x…', '0x…'), joined by ||, with a range for each run of consecutive slots.
//
// It is empty if the set has all slots, since the server then has nothing to select. The syntax has no
// selector of nothing: for the empty set, the selector has a range of a single hash. Objects of that hash,
// which almost certainly do not exist, are not in the set.
func (s Slots) Selector() string {
	if s == allSlots() {
		return ""
	}
	var parts []apisharding.ShardRangeRequirement
	for from, to := range s.ranges() {
		parts = append(parts, apisharding.ShardRangeRequirement{Key: field, Start: bound(from), End: bound(to)})
	}
	if parts == nil {
		parts = append(parts, apisharding.ShardRangeRequirement{Key: field, Start: "0xffffffffffffffff", End: bound(SlotCount)})
	}
	return apisharding.NewSelector(parts...).String()
}

// selectorRange is a range in a selector of shards.
var selectorRange = regexp.MustCompile(`^shardRange\(\s*` + regexp.QuoteMeta(field) + `\s*,\s*'0x([0-9a-f]{16})'\s*,\s*'0x(10{16}|[0-9a-f]{16})'\s*\)$`)

// ParseSelector returns the slots that a selector selects, such as the one that a server repeats in the shardInfo of a list.
// It reports false if the text is not a selector by UID, or if a range does not begin and end with a slot.
func ParseSelector(selector string) (s Slots, ok bool) {
	if selector == "" {
		return allSlots(), true
	}
	if selector == (Slots{}).Selector() {
		return Slots{}, true
	}
	for part := range strings.SplitSeq(selector, "||") {
		match := selectorRange.FindStringSubmatch(strings.TrimSpace(part))
		if match == nil {
			return Slots{}, false
		}
		from, fromSlot := slotAt(match[1])
		to, toSlot := slotAt(match[2])
		if !fromSlot || !toSlot || from >= to {
			return Slots{}, false
		}
		for slot := from; slot < to; slot++ {
			s.add(slot)
		}
	}
	return s, true
}

// slotAt returns the slot whose lowest hash has these digits, or SlotCount for 2^64. It reports false if there is none.
func slotAt(digits string) (slot int, ok bool) {
	high := len(digits) - slotWidth/4
	if strings.Trim(digits[high:], "0") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(digits[:high], 16, 16)
	return int(n), err == nil && n <= SlotCount
}

// bound returns the lowest hash of a slot, with 16 digits, or 2^64.
func bound(slot int) string { return fmt.Sprintf("0x%02x%014x", slot, 0) }

// String returns the slots as numbers and ranges of numbers, such as "0-63,70". It is empty for the empty set.
func (s Slots) String() string {
	var text []byte
	for from, to := range s.ranges() {
		if text != nil {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(from), 10)
		if to > from+1 {
			text = append(text, '-')
			text = strconv.AppendInt(text, int64(to-1), 10)
		}
	}
	return string(text)
}

// parseSlots parses the text that String returns.
func parseSlots(text string) (s Slots, ok bool) {
	if text == "" {
		return Slots{}, true
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, errFrom := strconv.ParseUint(first, 10, 8)
		to, errTo := strconv.ParseUint(last, 10, 8)
		if errFrom != nil || errTo != nil || from > to {
			return Slots{}, false
		}
		for slot := from; slot <= to; slot++ {
			s.add(int(slot)) //nolint:gosec // at most 255
		}
	}
	return s, true
}
