package sharding

import (
	"errors"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
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
		{2, 0, 0},
		{3, 0, .01},
		{4, 0, 0},
		{5, 0, .02},
		{8, 0, .04},
		{16, 0, .13},
		{2, 1, .01},
		{3, 1, .01},
		{4, 1, .02},
		{5, 1, .03},
		{8, 1, .10},
		{16, 1, .19},
		{2, 2, .01},
		{4, 2, .05},
		{8, 2, .19},
		{4, 4, .16},
		{8, 4, .29},
		{2, 14, .19},
		{4, 12, .29},
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
		{[]int{-1, 257, math.MaxInt}, []int{1, 2, 3}},
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

// Members that join at the same time choose the same seat. The first one by name keeps it.
func TestMachine_EachMemberGetsASeatOfItsOwn(t *testing.T) {
	for name, want := range map[string]int{"a": 2, "zombie": 1} {
		r := newRig(t)
		r.cycle()
		late := other(name, Slots{})
		late.seat = 1
		r.store(late)
		r.sends(update)
		r.answer(0)
		r.sends(list)
		r.answer(0)
		if r.seat != want || r.want != slotsOf(want, []int{3 - want}) {
			t.Errorf("beside %s: seat %d with %v, want seat %d", name, r.seat, r.want, want)
		}
		r.sends(update)
		if r.written.seat != want {
			t.Errorf("beside %s: the Lease says seat %d, want %d", name, r.written.seat, want)
		}
	}
}

func TestMachine_WritesItsSeatAgain(t *testing.T) {
	r := newRig(t, other("a", allSlots()))
	r.cycle()
	changed := *r.stored("group-me")
	changed.seat = noSeat
	r.store(&changed)
	r.sends(list) // since another member claims all slots
	r.answer(0)
	r.atOnce(update)
	if got := r.stored("group-me").seat; got != 1 {
		t.Errorf("the Lease says seat %d", got)
	}
}

func TestMachine_SeesTheNewSeatOfAnother(t *testing.T) {
	moved := other("a", Slots{})
	r := newRig(t, moved)
	r.cycle()
	moved.seat = 5
	r.store(moved)
	r.cycle()
	if want := slotsOf(1, []int{5}); r.want != want || want == slotsOf(1, []int{2}) {
		t.Errorf("wants %v, not %v", r.want, want)
	}
}

func TestMachine_KeepsItsSeatWhenOthersComeAndGo(t *testing.T) {
	r := newRig(t, other("a", Slots{}), other("b", Slots{}))
	r.cycle()
	r.drop("group-a") // which is first by name
	for range 20 {
		r.store(other("b", Slots{}))
		r.cycle()
		r.now += usual.retry
	}
	if mine := slotsOf(1, []int{3}); r.seat != 1 || r.grant.slots != mine {
		t.Errorf("seat %d with %v, want %v", r.seat, r.grant.slots, mine)
	}
}

// A member gets back to its seat after its term has ended, but not from a member that has got it meanwhile: that one
// would have to give all its slots away, too.
func TestMachine_YieldsItsSeatAfterItsTerm(t *testing.T) {
	for _, taken := range []bool{false, true} {
		r := newRig(t)
		r.cycle()
		r.now += usual.renew
		if taken {
			successor := other("zombie", allSlots())
			successor.seat = 1
			r.store(successor)
		}
		r.sends(list) // before it says that it has the seat
		r.answer(0)
		want := 1
		if taken {
			want = 2
		}
		r.sends(update)
		if r.seat != want || r.written.seat != want {
			t.Errorf("taken: %t: seat %d, and the Lease says %d", taken, r.seat, r.written.seat)
		}
		r.answer(0)
		r.sends(list)
		r.answer(0)
		if r.seat != want {
			t.Errorf("taken: %t: later, seat %d", taken, r.seat)
		}
		late := other("zombie", Slots{})
		late.seat = want
		r.store(late)
		for range 10 {
			if sent, wait := r.next(r.clock()); sent.verb != 0 {
				r.answer(0)
			} else {
				r.now += wait
			}
		}
		if r.seat != want {
			t.Errorf("taken: %t: seat %d, though it is the first by name", taken, r.seat)
		}
	}
}

func TestMachine_HasTheSeatOfItsPredecessor(t *testing.T) {
	before := predecessor()
	before.seat = 2
	r := newRig(t, before)
	for r.acked == 0 {
		if sent, wait := r.next(r.clock()); sent.verb == 0 {
			r.now += wait
		} else {
			r.answer(0)
		}
	}
	if r.seat != 2 || r.machine.stored.seat != 2 {
		t.Errorf("seat %d, and the Lease says %d", r.seat, r.machine.stored.seat)
	}
}

// The seat of a predecessor may have another member, which would have to give all its slots away. The first write may be lost.
func TestMachine_YieldsTheSeatOfItsPredecessor(t *testing.T) {
	for _, lost := range []bool{false, true} {
		before := predecessor()
		before.identity, before.claims, before.seat = "", Slots{}, 1
		successor := other("zombie", allSlots())
		successor.seat = 1
		r := newRig(t, before, successor)
		r.sends(list)
		r.answer(0)
		if lost {
			r.sends(update)
			r.failed(r.clock(), unknown, errors.New("lost"))
			r.sends(list)
			r.answer(0)
		}
		w := r.sends(update)
		if want := slotsOf(2, []int{1}); r.seat != 2 || w.record.seat != 2 || w.record.claims != want {
			t.Errorf("lost: %t: seat %d, and the Lease says seat %d and claims %v, want %v", lost, r.seat, w.record.seat, w.record.claims, want)
		}
	}
}

// A member whose first write takes long chooses another seat if a member has got its seat meanwhile.
func TestMachine_YieldsASeatThatItHasNotWritten(t *testing.T) {
	r := newRig(t)
	r.sends(list)
	r.answer(0)
	if w := r.sends(create); w.record.seat != 1 {
		t.Errorf("the first write says seat %d", w.record.seat)
	}
	r.failed(r.clock(), unknown, errors.New("lost"))
	first := other("zombie", allSlots())
	first.seat = 1
	r.store(first)
	r.sends(list)
	r.answer(0)
	if w := r.sends(create); w.record.seat != 2 || w.record.claims != slotsOf(2, []int{1}) {
		t.Errorf("the second write says seat %d and claims %v", w.record.seat, w.record.claims)
	}
}

// A member that joins after another one was killed gets the seat and the slots of that one at once.
func TestMachine_DoesNotWaitForALeaseThatExpiredForOthers(t *testing.T) {
	killed := other("zombie", allSlots())
	first := newRig(t, killed)
	for first.stored("group-zombie").identity != "" {
		if sent, wait := first.next(first.clock()); sent.verb == 0 {
			first.now += wait
		} else if sent.verb == release {
			first.store(&sent.record)
			first.answer(0)
		} else {
			first.answer(0)
		}
	}
	if waited := first.now - time.Minute; waited > usual.lease+usual.skew+2*usual.retry {
		t.Errorf("released after %v", waited)
	}
	r := newRig(t, first.stored("group-zombie"))
	r.cycle()
	r.owns(allSlots())
}
