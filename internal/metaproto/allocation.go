package metaproto

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// allocation is the memory of an object and of its managed fields.
type allocation struct {
	object  *metav1.PartialObjectMetadata
	entries []metav1.ManagedFieldsEntry
	times   []metav1.Time // that are not in use yet
}

// Objects with up to four managed fields, which most have, are one allocation with them, and with as many times as the allocator's
// size classes leave room for.
type (
	withOne struct {
		object  metav1.PartialObjectMetadata
		entries [1]metav1.ManagedFieldsEntry
		times   [1]metav1.Time
	}
	withTwo struct {
		object  metav1.PartialObjectMetadata
		entries [2]metav1.ManagedFieldsEntry
		times   [1]metav1.Time
	}
	withThree struct {
		object  metav1.PartialObjectMetadata
		entries [3]metav1.ManagedFieldsEntry
		times   [1]metav1.Time
	}
	withFour struct {
		object  metav1.PartialObjectMetadata
		entries [4]metav1.ManagedFieldsEntry
		times   [2]metav1.Time
	}
)

// allocate returns the memory of an object with count managed fields. If objects are not shared, a program may remove these to save memory:
// they are an allocation of their own.
func (d *Decoder) allocate(count int) allocation {
	if d.Shared {
		switch count {
		case 1:
			a := &withOne{}
			return allocation{&a.object, a.entries[:], a.times[:]}
		case 2:
			a := &withTwo{}
			return allocation{&a.object, a.entries[:], a.times[:]}
		case 3:
			a := &withThree{}
			return allocation{&a.object, a.entries[:], a.times[:]}
		case 4:
			a := &withFour{}
			return allocation{&a.object, a.entries[:], a.times[:]}
		}
	}
	a := allocation{object: &metav1.PartialObjectMetadata{}}
	if count > 0 {
		a.entries = make([]metav1.ManagedFieldsEntry, count)
	}
	return a
}

// time returns a pointer to t.
func (a *allocation) time(t metav1.Time) *metav1.Time {
	if len(a.times) == 0 {
		own := t
		return &own
	}
	free := &a.times[0]
	a.times = a.times[1:]
	*free = t
	return free
}
