package sharding

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// A member that has joined after the last list must see that the Lease is released. If it was deleted, that member would wait until it has expired.
func TestMachine_LooksForOthersBeforeItDeletesItsLease(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.store(other("b", Slots{}))
	r.leave()
	r.letGo(r.grant.generation)
	r.sends(update)
	r.answer(0)
	if r.left {
		t.Error("it has left without a list")
	}
	r.sends(list)
	r.answer(0)
	if sent, _ := r.next(r.clock()); sent.verb != 0 || !r.left || r.stored("group-me").identity != "" {
		t.Errorf("it sends %d, left: %v", sent.verb, r.left)
	}
}

// The Lease is released. It stays if it is not known whether there are others.
func TestMachine_LeavesIfTheListAfterTheReleaseFails(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.leave()
	r.letGo(r.grant.generation)
	r.sends(update)
	r.answer(0)
	r.sends(list)
	r.refuse()
	if sent, _ := r.next(r.clock()); sent.verb != 0 || !r.left {
		t.Errorf("it sends %d, left: %v", sent.verb, r.left)
	}
}

// Another member releases the Lease of one that it takes for dead. That is not the end of a member whose followers have not let go, or that has
// sent a write which may be executed later.
func TestMachine_LeavesOnlyByItsOwnRelease(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.leave()
	released := *r.stored("group-me")
	released.identity, released.claims = "", Slots{}
	r.store(&released) // by another member
	r.sends(update)
	r.failed(r.clock(), conflict, errors.New("conflict"))
	r.sends(list)
	r.answer(0)
	if r.left || r.alone {
		t.Fatalf("left: %v, alone: %v, and its followers have not let go", r.left, r.alone)
	}
	r.sends(update)
	r.refuse()
	r.letGo(r.grant.generation)
	r.sends(list)
	r.answer(0)
	if w := r.sends(update); w.record.identity != "" {
		t.Fatalf("it writes %+v", w.record)
	}
	r.answer(0)
	r.atOnce(list, remove)
	if !r.left {
		t.Error("it has not left")
	}
}

// Another member has released the Lease before the member has written that it leaves.
func TestMachine_WaitsForItsFollowersIfItsLeaseIsReleased(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.sends(update)
	r.answer(0)
	r.leave()
	released := *r.stored("group-me")
	released.identity, released.claims = "", Slots{}
	r.store(&released)
	r.sends(list)
	r.answer(0)
	if r.left || r.alone {
		t.Fatalf("left: %v, alone: %v, and its followers have not let go", r.left, r.alone)
	}
	if w := r.sends(update); w.record.identity != "me" || w.record.claims != allSlots() {
		t.Fatalf("it writes %+v", w.record)
	}
	r.answer(0)
	r.letGo(r.grant.generation)
	r.atOnce(list, update, list, remove)
	if !r.left {
		t.Error("it has not left")
	}
}

// The last list of a member that leaves may be older than a member that joins, as when a Deployment of one replica is updated.
func TestMember_OneThatJoinsHasAllSlotsSoonAfterTheOnlyOtherOneHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		lists := make(chan struct{}, 100)
		c := s.Client()
		c.SetFault(func(verb string) (before, after error) {
			if verb == "list" {
				lists <- struct{}{}
			}
			return nil, nil
		})
		a := join(t, c, "a")
		waitFor(t, a, has(all))
		for len(lists) > 0 {
			<-lists
		}
		<-lists
		b := join(t, s.Client(), "b")
		time.Sleep(100 * time.Millisecond) // it has a Lease
		if len(a.Status().Members) > 0 || s.Count() != 2 {
			t.Fatalf("a knows %v, %d Leases", a.Status().Members, s.Count())
		}
		begun := time.Now()
		leave(t, a)
		waitFor(t, b, has(all))
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("b has all slots %v after a has left", took)
		}
		leave(t, b)
	})
}

// A Lease that is released says that the member has left, also if the requests after that hang.
func TestMember_HasLeftWhenItsLeaseIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		c := s.Client()
		a := join(t, c, "a")
		waitFor(t, a, has(all))
		time.Sleep(time.Second)
		c.SetFault(func(verb string) (before, after error) {
			if verb == "update" {
				c.SetHang(true) // the next request
			}
			return nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Leave(ctx); err != nil || *s.Lease(a.machine.name).Spec.HolderIdentity != "" {
			t.Errorf("error %v, the Lease is %v", err, s.Lease(a.machine.name))
		}
	})
}
