package sharding

import (
	"cmp"
	"slices"
	"sync"
)

// noSeat is the seat of a member that has none, and has no slots. Seats are numbers from 1 to SlotCount.
const noSeat = 0

// assignSeats returns the seats of members, who are in the order of their names. said are the seats that their
// Leases say. A member keeps its seat, unless one before it says the same. The others get the lowest free
// seats in their order. So members that see the same Leases agree, and each seat has one member.
func assignSeats(said []int) []int {
	var taken [SlotCount + 1]bool
	seats := make([]int, len(said))
	for i, seat := range said {
		if seat > noSeat && seat <= SlotCount && !taken[seat] {
			seats[i], taken[seat] = seat, true
		}
	}
	free := noSeat + 1
	for i := range seats {
		if seats[i] != noSeat {
			continue
		}
		for free <= SlotCount && taken[free] {
			free++
		}
		if free > SlotCount {
			break // members without a seat wait for one
		}
		seats[i], taken[free] = free, true
	}
	return seats
}

// ranks has the rank of each seat for each slot, from 0. A slot belongs to the member whose seat has the lowest rank
// for it. So a member that comes only takes slots, and one that goes only leaves its own. Rendezvous hashing has
// hashes of identities as ranks. With it, the standard deviation of the shares is 11 % of the mean with four members,
// and 17 % with eight.
type ranks [SlotCount + 1][SlotCount]uint8

// seatRanks returns the ranks.
var seatRanks = sync.OnceValue(newRanks)

// newRanks computes the ranks. They are a part of the protocol: all members must have the same ones.
//
// It inserts one seat after the other into the orders of all slots. Slots with the same first seats, up to three, are a
// group. The new seat gets each place equally often in the orders of a group, up to one. So it gets the same share of the
// slots of each seat before it, as owner, as first substitute, and so on. Of four seats without a gap, each
// has 64 slots, and the substitutes of each have a third of its slots. In a group, the slots in whose orders the new seat has the
// same place are consecutive, so that selectors are short.
func newRanks() *ranks {
	var orders [SlotCount][]int // the seats, by rank
	slots := make([]int, SlotCount)
	for slot := range slots {
		slots[slot] = slot
	}
	for seat := 1; seat <= SlotCount; seat++ {
		var owned [SlotCount + 1]int
		for _, order := range orders {
			if len(order) > 0 {
				owned[order[0]]++
			}
		}
		// The slots of the seats that have most come first: if a place is left over, it is in their orders.
		slices.SortFunc(slots, func(a, b int) int {
			x, y := orders[a], orders[b]
			if len(x) > 0 && owned[x[0]] != owned[y[0]] {
				return owned[y[0]] - owned[x[0]]
			}
			return cmp.Or(slices.Compare(x, y), a-b)
		})
		same := min(3, seat-1)
		for from := 0; from < SlotCount; {
			to := from + 1
			for to < SlotCount && slices.Equal(orders[slots[to]][:same], orders[slots[from]][:same]) {
				to++
			}
			places := make([]int, 0, to-from)
			for i := from; i < to; i++ {
				places = append(places, i%seat)
			}
			slices.Sort(places)
			alike := slices.Sorted(slices.Values(slots[from:to]))
			for i, slot := range alike {
				orders[slot] = slices.Insert(orders[slot], places[i], seat)
			}
			from = to
		}
	}
	r := new(ranks)
	for slot, order := range orders {
		for rank, seat := range order {
			r[seat][slot] = uint8(rank)
		}
	}
	return r
}

// slotsOf returns the slots that a seat has beside others.
func slotsOf(seat int, others []int) Slots {
	if seat == noSeat {
		return Slots{}
	}
	all, slots := seatRanks(), allSlots()
	for _, other := range others {
		if other == noSeat {
			continue
		}
		for slot := range slots.All() { // fewer and fewer
			if all[other][slot] < all[seat][slot] {
				slots.remove(slot)
			}
		}
	}
	return slots
}
