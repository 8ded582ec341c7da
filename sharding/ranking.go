package sharding

import "hash/fnv"

// ranking has the weight of one member for each slot. A slot belongs to the member with the greatest weight
// for it, which is rendezvous hashing: the order of two members depends on nothing but their identities, so
// a member that comes only takes slots, and one that goes only leaves its own.
type ranking [SlotCount]uint64

// newRanking returns the weights of a member. The highest 8 bits are a random permutation of the slots, so
// that each member has each of these 256 values once. Shares vary half as much as with independent weights.
// The other bits make ties improbable.
func newRanking(identity string) *ranking {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(identity)) // never fails
	random := splitMix(hash.Sum64())
	var r ranking
	for slot := range r {
		// The permutation of Fisher and Yates, from the inside out.
		j := int(random.next() % uint64(slot+1)) //nolint:gosec // at most 255
		r[slot] = r[j]
		r[j] = uint64(slot) << slotWidth
	}
	for slot := range r {
		r[slot] |= random.next() >> (64 - slotWidth)
	}
	return &r
}

// splitMix is the random number generator SplitMix64. Its numbers are a part of the protocol, so it is not
// a generator of a library.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// beats reports whether a member has slot rather than another member. Equal weights are decided by the
// identities.
func (r *ranking) beats(other *ranking, slot int, identity, otherIdentity string) bool {
	if r[slot] != other[slot] {
		return r[slot] > other[slot]
	}
	return identity < otherIdentity
}
