package sharding

import (
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// owners returns the seat that has each slot.
func owners(seats []int) (owner [SlotCount]int) {
	for i, seat := range seats {
		for slot := range slotsOf(seat, slices.Concat(seats[:i], seats[i+1:])).All() {
			owner[slot] = seat
		}
	}
	return owner
}

// randomSeats returns n seats, up to most.
func randomSeats(random *rand.Rand, n, most int) []int {
	seats := random.Perm(most)[:n]
	for i := range seats {
		seats[i]++
	}
	return seats
}

func TestSeats_AMemberThatComesOrGoesMovesItsOwnSlotsOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		n := 2 + random.IntN(12)
		seats := randomSeats(random, n, n+random.IntN(n))
		with, without := owners(seats), owners(seats[1:])
		for slot, owner := range with {
			if owner == noSeat || without[slot] == noSeat {
				t.Fatalf("%v: slot %d has no owner", seats, slot)
			}
			if owner != seats[0] && owner != without[slot] {
				t.Fatalf("%v without %d: slot %d moves from %d to %d", seats, seats[0], slot, owner, without[slot])
			}
		}
	}
}

// Members leave gaps, which those who join later fill.
func TestSeats_SharesAreEven(t *testing.T) {
	for _, test := range []struct {
		members, gaps int
		limit         float64 // of the difference to the mean, in parts of it
	}{
		{2, 0, 0}, {3, 0, .01}, {4, 0, 0}, {5, 0, .02}, {8, 0, .04}, {16, 0, .13},
		{2, 1, .01}, {3, 1, .01}, {4, 1, .02}, {5, 1, .03}, {8, 1, .10}, {16, 1, .19},
		{2, 2, .01}, {4, 2, .05}, {8, 2, .19}, {4, 4, .16}, {8, 4, .29}, {2, 14, .19}, {4, 12, .29},
	} {
		worst := 0.0
		for taken := range 1 << (test.members + test.gaps) {
			if bits.OnesCount(uint(taken)) != test.members {
				continue
			}
			var seats []int
			for i := range test.members + test.gaps {
				if taken&(1<<i) != 0 {
					seats = append(seats, i+1)
				}
			}
			count := map[int]int{}
			for _, owner := range owners(seats) {
				count[owner]++
			}
			for _, seat := range seats {
				worst = max(worst, math.Abs(float64(count[seat]*len(seats))/SlotCount-1))
			}
		}
		if worst > test.limit {
			t.Errorf("%d members, %d gaps: a share differs by %.3f, want %v", test.members, test.gaps, worst, test.limit)
		}
	}
}

// Selectors of few members are short.
func TestSeats_SlotsAreInARow(t *testing.T) {
	for members, limit := range []int{1: 1, 2: 1, 3: 2, 4: 6, 5: 24} {
		for seat := range members {
			others := make([]int, 0, members)
			for other := range members {
				if other != seat {
					others = append(others, other+1)
				}
			}
			ranges := 0
			for range slotsOf(seat+1, others).ranges() {
				ranges++
			}
			if ranges > limit {
				t.Errorf("seat %d of %d has %d ranges", seat+1, members, ranges)
			}
		}
	}
}

func TestAssignSeats(t *testing.T) {
	for _, test := range []struct{ said, want []int }{
		{[]int{0}, []int{1}},
		{[]int{0, 0, 0}, []int{1, 2, 3}},
		{[]int{3, 0, 1}, []int{3, 2, 1}},
		{[]int{2, 2, 2, 1}, []int{2, 3, 4, 1}},
		{[]int{-1, 257, 1 << 40}, []int{1, 2, 3}},
	} {
		said := slices.Clone(test.said)
		if got := assignSeats(said); !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.said, got, test.want)
		}
		if again := assignSeats(test.want); !slices.Equal(again, test.want) {
			t.Errorf("%v: %v, though each has a seat", test.want, again)
		}
	}
	all := make([]int, SlotCount+2)
	for i := range all {
		all[i] = i + 1
	}
	all[4], all[SlotCount], all[SlotCount+1] = 1, 0, 0
	seats := assignSeats(all)
	if seats[4] != 5 || seats[SlotCount] != noSeat || seats[SlotCount+1] != noSeat {
		t.Errorf("of %d members, the last ones have the seats %v", len(all), seats[SlotCount-1:])
	}
	if got := slotsOf(noSeat, nil); !got.Empty() {
		t.Errorf("without a seat: %v", got)
	}
	if got := slotsOf(1, []int{noSeat}); got.Len() != SlotCount {
		t.Errorf("beside a member without a seat: %d slots", got.Len())
	}
}

// Ranks are a part of the protocol: members of two versions of this package must agree.
func TestSeatRanks_DoNotChange(t *testing.T) {
	hash := fnv.New64a()
	for _, ranks := range seatRanks() {
		_, _ = hash.Write(ranks[:])
	}
	if got := hash.Sum64(); got != 0xb66ce9b22da46751 {
		t.Errorf("got %x", got)
	}
}
