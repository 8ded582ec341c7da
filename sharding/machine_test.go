package sharding

import (
	"errors"
	"testing"
	"time"
)

func TestMachine_HasAllSlotsAlone(t *testing.T) {
	r := newRig(t)
	r.owns(Slots{})
	r.sends(list)
	r.answer(0)
	w := r.sends(create)
	if w.record.identity != "me" || w.record.claims != allSlots() || w.record.term != usual.lease {
		t.Errorf("the first write is %+v", w.record)
	}
	r.answer(0)
	r.owns(Slots{}) // a list decides
	r.sends(list)
	r.answer(0)
	r.owns(allSlots())
	if r.reason != ReasonNone || !r.pending.Empty() {
		t.Errorf("reason %q, pending %v", r.reason, r.pending)
	}
}

func TestMachine_RemembersLostSlots(t *testing.T) {
	r := newRig(t)
	half := Slots{}
	for slot := range SlotCount / 2 {
		half.add(slot)
	}
	r.setGrant(allSlots())
	first := r.grant.generation
	r.setGrant(half)
	second := r.grant.generation
	r.setGrant(allSlots())
	for since, want := range map[uint64]Slots{first: allSlots().Minus(half), second: {}, r.grant.generation: {}} {
		if got := r.lostSince(since); got != want {
			t.Errorf("lost since %d: %v, want %v", since, got, want)
		}
	}
}

func TestMachine_TermBeginsWhenTheRenewalIsSent(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.sends(update)
	sent := r.now
	r.answer(3 * time.Second)
	r.sends(list)
	r.now = sent + usual.renew - 1
	r.owns(allSlots())
	r.now++
	r.owns(Slots{})
	r.tick(r.clock())
	if r.reason != ReasonNotRenewed || !r.grant.slots.Empty() || r.draining != allSlots() {
		t.Errorf("reason %q, slots %v, letting go %v", r.reason, r.grant.slots, r.draining)
	}
}

// With many members, a member may have no slots.
func TestMachine_MemberWithoutSlotsIsNotRenewed(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.setGrant(Slots{})
	r.sends(update)
	r.now = r.grant.until.mono - 1
	r.tick(r.clock())
	if r.reason != ReasonNone {
		t.Errorf("reason %q", r.reason)
	}
	r.now++
	r.tick(r.clock())
	if r.reason != ReasonNotRenewed {
		t.Errorf("reason %q", r.reason)
	}
}

func TestMachine_TermEndsByEachClock(t *testing.T) {
	g := grant{slots: allSlots(), until: instant{10, 10}}
	for _, test := range []struct {
		now  instant
		want bool
	}{
		{instant{9, 9}, true},
		{instant{10, 9}, false},
		{instant{9, 10}, false}, // the machine was suspended
		{instant{10, -100}, false},
		{instant{9, -100}, true},
	} {
		if got := g.owns(0, test.now); got != test.want {
			t.Errorf("at %v, owns: %v, want %v", test.now, got, test.want)
		}
	}
}

func TestMachine_WakesAtTheEndOfItsTerm(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.sends(update)
	if _, wait := r.next(r.clock()); r.clock().add(wait) != r.grant.until {
		t.Errorf("waits %v at %v, the term ends at %v", wait, r.now, r.grant.until)
	}
}

func TestMachine_LateResponseDoesNotReviveSlots(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.sends(update)
	r.answer(usual.renew) // the previous term has ended, and this one too
	r.owns(Slots{})
	r.sends(list)
	r.answer(0)
	if r.owns(Slots{}); !r.grant.slots.Empty() {
		t.Errorf("has %v after its term", r.grant.slots)
	}

	r = newRig(t)
	r.cycle()
	r.now += 8 * time.Second
	r.sends(update)
	r.answer(3 * time.Second) // the previous term has ended, this one not
	r.owns(Slots{})
	if r.reason != ReasonNotRenewed {
		t.Errorf("reason %q", r.reason)
	}
	r.sends(list)
	r.answer(0)
	r.owns(allSlots()) // no other member has claimed them
}

func TestMachine_ClaimsOfOthersCount(t *testing.T) {
	mine, rest := shares("a")
	r := newRig(t, other("a", allSlots()))
	r.cycle()
	r.owns(Slots{})
	if r.pending != mine || r.blocking != mine {
		t.Errorf("pending %v, blocked %v, want %v", r.pending, r.blocking, mine)
	}
	r.store(other("a", rest))
	r.sends(list)
	r.answer(0)
	r.owns(mine)
}

func TestMachine_LeaseExpiresByTheClockOfItsReader(t *testing.T) {
	mine, _ := shares("a")
	for _, test := range []struct {
		name     string
		after    time.Duration // from the first list's response to the later request
		response time.Duration
		term     time.Duration // of the other Lease
		want     bool
	}{
		{"too early", usual.lease + usual.skew - 1, 0, usual.lease, false},
		{"in time", usual.lease + usual.skew, 0, usual.lease, true},
		{"a late response", usual.lease, usual.skew + usual.retry, usual.lease, false},
		{"a longer term", usual.lease + usual.skew, 0, 2 * usual.lease, false},
		{"at the end of a longer term", 2*usual.lease + usual.skew, 0, 2 * usual.lease, true},
		{"a shorter term", usual.lease, 0, time.Second, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dead := other("a", mine)
			dead.term = test.term
			r := newRig(t, dead)
			r.sends(list)
			r.answer(2 * time.Second) // the Lease may have been renewed until now
			seen := r.now
			r.sends(create)
			r.answer(0)
			for r.now+time.Second < seen+test.after { // renewals
				switch sent, wait := r.next(r.clock()); {
				case sent.verb != 0:
					r.answer(0)
				default:
					r.now += min(wait, seen+test.after-r.now)
				}
			}
			r.now = seen + test.after
			r.pollAt, r.retryAt = 0, 0
			for {
				sent, _ := r.next(r.clock())
				if sent.verb == list {
					break
				}
				r.answer(0)
			}
			r.answer(test.response)
			if got := r.peers[0].expired; got != test.want {
				t.Fatalf("expired: %v, want %v", got, test.want)
			}
			if test.want && r.want != allSlots() {
				t.Error("the slots of the expired member are not wanted")
			}
			if test.want && test.response == 0 {
				r.owns(mine) // the others are not claimed yet
			}
		})
	}
}

// When an API server is back, no member has renewed its Lease. The first one waits for the others.
func TestMachine_LeasesDoNotExpireWhileTheServerIsDown(t *testing.T) {
	mine, rest := shares("a")
	r := newRig(t, other("a", rest))
	r.cycle()
	for end := r.now + time.Minute; r.now < end; {
		if sent, wait := r.next(r.clock()); sent.verb == 0 {
			r.now += wait
		} else {
			r.refuse()
		}
	}
	back := r.now
	for r.want == mine && r.now < back+time.Minute {
		if sent, wait := r.next(r.clock()); sent.verb == 0 {
			r.now += wait
		} else {
			r.answer(0)
		}
	}
	if waited := r.now - back; waited < usual.lease+usual.skew || waited > usual.lease+usual.skew+2*usual.retry {
		t.Errorf("wants the slots of the other one after %v", waited)
	}
}

func TestMachine_RenewedLeaseDoesNotExpire(t *testing.T) {
	mine, rest := shares("a")
	r := newRig(t, other("a", rest))
	for end := r.now + time.Minute; r.now < end; {
		r.cycle()
		r.store(other("a", rest))
	}
	r.owns(mine)
}

func TestMachine_LostResponse(t *testing.T) {
	for _, executed := range []bool{true, false} {
		r := newRig(t, other("a", Slots{}))
		mine, _ := shares("a")
		r.cycle()
		r.owns(mine)
		r.drop("group-a")
		last := other("a", Slots{})
		last.identity = ""
		r.store(last) // a has left
		r.sends(update)
		r.answer(0)
		r.sends(list)
		r.answer(time.Second) // now it wants all
		w := r.sends(update)
		if executed {
			r.execute(w)
		}
		r.failed(r.clock(), unknown, errors.New("lost"))
		r.sends(list)
		r.answer(0)
		if executed {
			if r.owns(allSlots()); r.grant.until != r.writtenAt.add(usual.renew) {
				t.Errorf("the term ends at %v, the write was sent at %v", r.grant.until, r.writtenAt)
			}
			continue
		}
		// The write may be executed later.
		r.owns(mine)
		w = r.sends(update)
		if w.record.version != r.stored("group-me").version || w.record.write != r.acked+2 {
			t.Errorf("the repeated write is %+v, stored is %+v", w.record, r.stored("group-me"))
		}
		r.answer(0)
		r.sends(list)
		r.answer(0)
		r.owns(allSlots())
	}
}

// A write that withdraws a claim may be executed after a list that still has the claim.
func TestMachine_PendingWriteMayWithdrawAClaim(t *testing.T) {
	mine, rest := shares("a")
	r := newRig(t)
	r.cycle()
	r.owns(allSlots())
	a := other("a", Slots{})
	r.store(a)
	r.sends(update)
	r.answer(0)
	r.sends(list)
	r.answer(0)
	r.owns(mine)
	r.letGo(r.grant.generation)
	withdrawal := r.sends(update)
	if withdrawal.record.claims != mine {
		t.Fatalf("claims %v, want %v", withdrawal.record.claims, mine)
	}
	a.identity = ""
	r.store(a) // a has left again
	r.failed(r.clock(), unknown, errors.New("lost"))
	r.sends(list)
	r.answer(0)
	r.owns(mine) // the Lease still claims rest, but maybe not for long
	if r.pending != rest {
		t.Errorf("pending %v, want %v", r.pending, rest)
	}
	if w := r.sends(update); w.record.claims != allSlots() {
		t.Errorf("claims %v", w.record.claims)
	}
	r.answer(0)
	r.sends(list)
	r.answer(0)
	r.owns(allSlots())
}

func TestMachine_FollowersLetGoFirst(t *testing.T) {
	mine, rest := shares("a")
	r := newRig(t)
	r.cycle()
	first := r.grant.generation
	r.store(other("a", Slots{}))
	r.cycle()
	r.owns(mine)
	if r.draining != rest {
		t.Errorf("letting go %v, want %v", r.draining, rest)
	}
	r.letGo(first) // of a view before
	if w := r.sends(update); w.record.claims != allSlots() {
		t.Errorf("claims %v before the followers have let go", w.record.claims)
	}
	r.answer(0)
	r.sends(list)
	r.answer(0)
	at := r.now
	r.letGo(r.grant.generation)
	if w := r.sends(update); w.record.claims != mine || r.now != at {
		t.Errorf("after %v, claims %v, want %v at once", r.now-at, w.record.claims, mine)
	}
}

func TestMachine_LeavesWhenFollowersHaveLetGo(t *testing.T) {
	_, rest := shares("a")
	r := newRig(t, other("a", rest))
	r.cycle()
	r.leave()
	r.owns(Slots{})
	w := r.sends(update)
	if !w.record.leaving || w.record.identity != "me" || w.record.claims.Empty() {
		t.Errorf("the first write is %+v", w.record)
	}
	r.answer(0)
	r.sends(list)
	r.answer(0)
	if r.reason != ReasonLeaving {
		t.Errorf("reason %q", r.reason)
	}
	r.letGo(r.grant.generation)
	if w = r.sends(update); w.record.identity != "" || !w.record.claims.Empty() {
		t.Errorf("the last write is %+v", w.record)
	}
	r.answer(0)
	if !r.left {
		t.Error("it has not left")
	}
}

func TestMachine_LastMemberDeletesItsLease(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.leave()
	r.letGo(r.grant.generation)
	r.sends(update)
	r.answer(0)
	r.sends(list)
	r.answer(0)
	if w := r.sends(remove); w.record.name != "group-me" || w.record.version != r.stored("group-me").version {
		t.Errorf("deletes %+v", w.record)
	}
	r.answer(0)
	if !r.left {
		t.Error("it has not left")
	}
}

func TestMachine_LeavesWithoutALease(t *testing.T) {
	r := newRig(t)
	r.leave()
	r.sends(list)
	r.answer(0)
	if r.next(r.clock()); !r.left {
		t.Error("it has not left")
	}
}

// Another member, or another program, deletes the Lease before the followers have let go.
func TestMachine_LeavesWithoutALeaseWhenFollowersHaveLetGo(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.leave()
	r.sends(update)
	r.answer(0)
	r.drop("group-me")
	r.sends(list)
	r.answer(0)
	if sent, wait := r.next(r.clock()); sent.verb != 0 || wait < time.Minute || r.left || r.reason != ReasonLeaving {
		t.Errorf("it sends %d or waits %v, left: %v, reason %q", sent.verb, wait, r.left, r.reason)
	}
	r.letGo(r.grant.generation)
	if sent, _ := r.next(r.clock()); sent.verb != 0 || !r.left {
		t.Errorf("it sends %d, left: %v", sent.verb, r.left)
	}
}

func TestMachine_MemberThatLeavesGetsNoSlots(t *testing.T) {
	mine, rest := shares("a")
	leaving := other("a", rest)
	leaving.leaving = true
	r := newRig(t, leaving)
	r.cycle()
	r.owns(mine)
	if r.want != allSlots() {
		t.Errorf("wants %v", r.want)
	}
}

func TestMachine_DeletedLeaseCountsUntilItWouldHaveExpired(t *testing.T) {
	mine, rest := shares("a")
	r := newRig(t, other("a", rest))
	r.cycle()
	for range 3 {
		r.store(other("a", rest))
		r.cycle()
	}
	r.drop("group-a")
	r.cycle() // its time begins now: it may have been renewed before it was deleted
	gone := r.now
	for r.now < gone+usual.lease+usual.skew {
		r.owns(mine)
		r.cycle()
	}
	r.cycle()
	r.owns(allSlots())
	if r.now > gone+usual.lease+usual.skew+2*usual.retry {
		t.Errorf("after %v", r.now-gone)
	}
}

func TestMachine_ReleasedLeaseThatIsDeletedDoesNotCount(t *testing.T) {
	_, rest := shares("a")
	a := other("a", rest)
	r := newRig(t, a)
	r.cycle()
	a.identity = ""
	r.store(a) // claims do not matter
	r.cycle()
	r.drop("group-a")
	r.cycle()
	if r.owns(allSlots()); len(r.peers) > 0 {
		t.Error("a released Lease that was deleted is known")
	}
}

// Another program may write an annotation of its own.
func TestMachine_RepeatsAConflictAtOnce(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.sends(update)
	r.store(r.stored("group-me"))
	r.failed(r.clock(), conflict, errors.New("conflict"))
	r.atOnce(list, update, list)
	if r.owns(allSlots()); r.grant.generation != 2 {
		t.Errorf("generation %d", r.grant.generation)
	}
}

func TestMachine_OwnLeaseIsDeleted(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.drop("group-me")
	r.sends(update)
	r.failed(r.clock(), conflict, errors.New("not found"))
	r.sends(list)
	r.answer(0)
	r.owns(Slots{})
	if r.reason != ReasonLeaseDeleted {
		t.Errorf("reason %q", r.reason)
	}
	r.sends(create)
	r.answer(0)
	r.sends(list)
	r.answer(0)
	r.owns(allSlots())
}

func TestMachine_OwnLeaseIsChanged(t *testing.T) {
	changes := map[string]func(*record){
		"claims less":             func(of *record) { of.claims = Slots{} },
		"is that of a past write": func(of *record) { of.write-- },
		"has no holder":           func(of *record) { of.identity = "" }, // its claims do not count
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.cycle()
			r.cycle()
			changed := *r.stored("group-me")
			change(&changed)
			r.store(&changed)
			r.sends(update)
			r.failed(r.clock(), conflict, errors.New("conflict"))
			at := r.now
			r.sends(list)
			if r.now != at {
				t.Errorf("waits %v after a conflict", r.now-at)
			}
			generation := r.grant.generation
			r.answer(0)
			r.owns(Slots{})
			if r.grant.generation == generation || r.reason != ReasonLeaseChanged {
				t.Errorf("generation %d, reason %q", r.grant.generation, r.reason)
			}
			r.cycle()
			r.owns(allSlots())
		})
	}
}

// The list between two renewals shows what another program has written, with the number of the last write. The reason is there until the
// next response, so that the log and Status say why the slots are gone.
func TestMachine_TheListThatEndsAGrantBeginsNone(t *testing.T) {
	for name, claims := range map[string]Slots{"all claims are gone": {}, "half of the claims are gone": slotsOf(1, []int{2})} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.cycle()
			r.sends(update)
			r.answer(0)
			changed := *r.stored("group-me")
			changed.claims = claims
			r.store(&changed)
			r.sends(list)
			r.answer(0)
			r.owns(Slots{})
			if r.reason != ReasonLeaseChanged {
				t.Errorf("reason %q", r.reason)
			}
			r.cycle()
			r.owns(allSlots())
			if r.reason != ReasonNone {
				t.Errorf("reason %q after a renewal", r.reason)
			}
		})
	}
}

func TestMachine_WaitsForItsPredecessor(t *testing.T) {
	r := newRig(t, predecessor())
	r.sends(list)
	r.answer(time.Second)
	seen := r.now
	for {
		sent, wait := r.next(r.clock())
		if sent.verb == update {
			break
		}
		if sent.verb == list {
			r.answer(0)
		} else {
			r.now += wait
		}
	}
	if waited := r.now - seen; waited < usual.lease+usual.skew || waited > usual.lease+usual.skew+usual.retry {
		t.Errorf("waited %v", waited)
	}
	r.owns(Slots{})
	r.answer(0)
	r.sends(list)
	r.answer(0)
	r.owns(allSlots())
}

func TestMachine_TakesOverAReleasedLeaseAtOnce(t *testing.T) {
	before := predecessor()
	before.identity = ""
	r := newRig(t, before)
	r.sends(list)
	r.answer(0)
	r.sends(update)
	if r.now != time.Minute {
		t.Errorf("waits %v", r.now-time.Minute)
	}
}

// The first write is late: the Lease is still that of the predecessor after the response was lost.
func TestMachine_TakesOverByALateWrite(t *testing.T) {
	for _, executed := range []bool{true, false} {
		r := newRig(t, predecessor())
		r.sends(list)
		r.answer(0)
		for r.waitsForPredecessor() {
			r.sends(list)
			r.answer(0)
		}
		w := r.sends(update)
		r.failed(r.clock(), unknown, errors.New("lost"))
		r.sends(list)
		r.answer(0)
		at := r.now
		if w2 := r.sends(update); r.now != at || w2.record.version != w.record.version {
			t.Errorf("after %v: %+v", r.now-at, w2.record)
		}
		if executed {
			r.execute(w)
			r.failed(r.clock(), conflict, errors.New("conflict"))
			r.sends(list)
			r.answer(0)
			r.sends(update)
		}
		r.answer(0)
		r.sends(list)
		r.answer(0)
		r.owns(allSlots())
	}
}

func TestMachine_DeletedPredecessorCounts(t *testing.T) {
	r := newRig(t, predecessor())
	r.sends(list)
	r.answer(0)
	r.drop("group-me")
	r.sends(list)
	r.answer(0)
	seen := r.now
	for r.waitsForPredecessor() && r.now < seen+time.Minute {
		r.sends(list)
		r.answer(0)
	}
	if waited := r.now - seen; waited < usual.lease+usual.skew || waited > usual.lease+usual.skew+usual.retry {
		t.Errorf("waited %v", waited)
	}
	r.sends(create)
}

func TestMachine_PredecessorIsAlive(t *testing.T) {
	for renewals := range 4 {
		r := newRig(t, predecessor())
		begun := r.now
		for i := 0; !r.left && r.now < begun+time.Minute && r.acked == 0; i++ {
			if i < renewals {
				r.store(predecessor())
			}
			sent, wait := r.next(r.clock())
			switch {
			case sent.verb != 0:
				r.answer(0)
			default:
				r.now += wait
			}
			if renewals == 3 {
				r.store(predecessor())
			}
		}
		if want := renewals == 3; r.inUse != want {
			t.Errorf("%d renewals: in use: %v, want %v", renewals, r.inUse, want)
		}
		if r.inUse && r.now < begun+usual.lease+usual.skew {
			t.Errorf("in use after %v", r.now-begun)
		}
	}
}

// A request that a killed process has sent may be executed late.
func TestMachine_OneLateWriteOfThePredecessorIsNoProcess(t *testing.T) {
	r := newRig(t, predecessor())
	late := r.now + usual.renew
	for written := false; r.acked == 0 && !r.left; {
		sent, wait := r.next(r.clock())
		if sent.verb != 0 {
			r.answer(0)
			continue
		}
		if r.now += wait; r.now >= late && !written {
			r.store(predecessor())
			written = true
		}
	}
	if r.inUse || r.now < late+usual.lease+usual.skew {
		t.Errorf("in use: %v, after %v", r.inUse, r.now-late)
	}
}

func TestMachine_RenewsEachRetryPeriod(t *testing.T) {
	r := newRig(t)
	r.cycle()
	before := r.now
	for range 20 {
		r.cycle()
		if gap := r.now - before; gap < usual.retry*4/5 || gap > usual.retry {
			t.Errorf("renews after %v", gap)
		}
		before = r.now
	}
}

// Slow responses do not make renewals less frequent.
func TestMachine_RenewsEachRetryPeriodFromASlowServer(t *testing.T) {
	r := newRig(t)
	r.cycle()
	for last := r.writtenAt.mono; r.now < 10*time.Minute; last = r.writtenAt.mono {
		r.sends(update)
		if took := r.now - last; took > usual.retry || took < usual.retry*4/5 {
			t.Fatalf("the renewals are %v apart, want %v", took, usual.retry)
		}
		r.answer(usual.retry * 3 / 8)
		r.sends(list)
		r.answer(usual.retry * 3 / 8)
	}
}

func TestMachine_ListsOftenWhileItWaits(t *testing.T) {
	r := newRig(t, other("a", allSlots()))
	r.cycle()
	before := r.now
	r.sends(list)
	if gap := r.now - before; gap > usual.retry/4 {
		t.Errorf("lists after %v", gap)
	}
}
