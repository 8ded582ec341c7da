package sharding

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Shard is a part of all objects, by the hashes of their UIDs. [Static] returns one that does not change, and
// [Join] one that changes with the members of a group. Shards are safe for concurrent use.
type Shard interface {
	// Owns reports whether this process may act on the object with this UID now. It compares the clock
	// with the end of the member's term in each call. Call it just before an action; the package's
	// documentation says how long the action may take.
	Owns(uid types.UID) bool
	// View returns the slots that the shard has now. It may be out of date at once, and does not compare
	// the clock: decide actions by Owns, and what to cache by View.
	View() View
	// Selector returns the selector of View().Slots: see [Slots.Selector].
	Selector() string
	// Changed returns a channel that closes when the View changes. Get it before View.
	Changed() <-chan struct{}
	// LostSince returns the slots that the shard has lost since the View with that generation, also if it has them
	// again: other members may have acted on their objects meanwhile. If the view has changed since the caller got
	// it, the result also has what was lost by that change.
	LostSince(generation uint64) Slots
	// String returns the name of the shard for errors.
	String() string
	// Follow registers a follower of the shard, such as an informer. The shard does not let slots go to
	// other members until all its followers have let them go. name is for the status.
	Follow(name string) *Follower
}

// View is what a shard has. It is a value.
type View struct {
	// Generation increases when Slots change. It begins with 1.
	Generation uint64
	// Slots are the slots on which this process may act.
	Slots Slots
}

// RangeError is the error for the numbers of a static shard. It matches [ErrInvalidConfig].
type RangeError struct{ Index, Count int }

// Error implements error.
func (e *RangeError) Error() string {
	return fmt.Sprintf("shard %d of %d: the number of shards must be from 1 to %d, and the index from 0 to one less", e.Index, e.Count, SlotCount)
}

// Is reports whether target is ErrInvalidConfig.
func (e *RangeError) Is(target error) bool { return target == ErrInvalidConfig }

// static is a Shard that does not change.
type static struct {
	view         View
	index, count int
}

// Static returns shard index of count shards, which are consecutive ranges of slots of equal size, up to one
// slot. The index is the ordinal of a pod of a StatefulSet, for example. All processes must have the same count:
// when count changes, stop all of them before the first one starts with another count. Static
// uses no Leases. It returns a [*RangeError] if there is no such shard.
func Static(index, count int) (Shard, error) {
	if count < 1 || count > SlotCount || index < 0 || index >= count {
		return nil, &RangeError{index, count}
	}
	s := static{View{Generation: 1}, index, count}
	for slot := index * SlotCount / count; slot < (index+1)*SlotCount/count; slot++ {
		s.view.Slots.add(slot)
	}
	return s, nil
}

func (s static) String() string { return fmt.Sprintf("shard %d of %d", s.index, s.count) }

func (s static) Owns(uid types.UID) bool  { return s.view.Slots.Has(SlotOf(uid)) }
func (s static) View() View               { return s.view }
func (s static) Selector() string         { return s.view.Slots.Selector() }
func (s static) Changed() <-chan struct{} { return nil }
func (s static) LostSince(uint64) Slots   { return Slots{} }
func (s static) Follow(string) *Follower  { return nil }
