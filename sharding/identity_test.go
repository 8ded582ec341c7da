package sharding

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// replaced returns a member that owns all slots and then sees its Lease as this one.
func replaced(t *testing.T, with *record) *rig {
	t.Helper()
	r := newRig(t)
	for r.now-r.joined < usual.lease+usual.skew {
		r.cycle()
	}
	r.owns(allSlots())
	r.store(with)
	r.sends(update)
	r.failed(r.clock(), conflict, errors.New("conflict"))
	r.sends(list)
	r.answer(0)
	r.owns(Slots{})
	return r
}

// A backup of etcd may be older than the last restart of the process. Another program may remove the annotation that names the process.
func TestMachine_LeaseThatNoOtherProcessRenewsIsTakenBack(t *testing.T) {
	stripped := other("me", allSlots())
	stripped.instance = ""
	for name, lease := range map[string]*record{"restored": predecessor(), "without the name of the process": stripped} {
		t.Run(name, func(t *testing.T) {
			for _, deleted := range []bool{false, true} {
				r := replaced(t, lease)
				if r.left || r.reason != ReasonLeaseChanged || r.pending != allSlots() {
					t.Fatalf("left: %v, reason %q, pending %v", r.left, r.reason, r.pending)
				}
				if deleted {
					r.drop(r.name)
					r.sends(list)
					r.answer(0)
				}
				seen := r.now
				for r.waitsForPredecessor() && r.now < seen+time.Minute {
					r.sends(list)
					r.answer(0)
					r.owns(Slots{})
				}
				if waited := r.now - seen; waited < usual.lease+usual.skew || waited > usual.lease+usual.skew+usual.retry {
					t.Errorf("deleted: %v: waited %v", deleted, waited)
				}
				if r.reason != ReasonLeaseChanged {
					t.Errorf("deleted: %v: reason %q", deleted, r.reason)
				}
				r.sends(map[bool]verb{false: update, true: create}[deleted])
				r.answer(0)
				r.owns(Slots{})
				r.sends(list)
				r.answer(0)
				if r.owns(allSlots()); r.reason != ReasonNone {
					t.Errorf("deleted: %v: reason %q", deleted, r.reason)
				}
			}
		})
	}
}

// One renewal is no other process. Each time, the renewals are counted anew.
func TestMachine_LeaseIsTakenBackAgainAndAgain(t *testing.T) {
	r := replaced(t, predecessor())
	for range 5 {
		r.store(predecessor()) // a late write
		for r.waitsForPredecessor() {
			r.sends(list)
			r.answer(0)
		}
		r.sends(update)
		r.answer(0)
		r.sends(list)
		r.answer(0)
		r.owns(allSlots())
		r.store(predecessor())
		r.sends(update)
		r.failed(r.clock(), conflict, errors.New("conflict"))
		r.sends(list)
		r.answer(0)
		if r.owns(Slots{}); r.left {
			t.Fatalf("it has ended with %q", r.reason)
		}
	}
}

// A second restore may bring the own Lease back while the member waits.
func TestMachine_WaitsAlsoForItsOwnRestoredLease(t *testing.T) {
	r := replaced(t, predecessor())
	own := r.written
	r.store(&own)
	r.sends(list)
	r.answer(0)
	seen := r.now
	for r.waitsForPredecessor() && r.now < seen+time.Minute {
		r.owns(Slots{})
		r.sends(list)
		r.answer(0)
	}
	if waited := r.now - seen; waited < usual.lease+usual.skew || waited > usual.lease+usual.skew+usual.retry {
		t.Errorf("waited %v", waited)
	}
	r.sends(update)
	r.answer(0)
	r.sends(list)
	r.answer(0)
	r.owns(allSlots())
}

// Another process has the identity, has waited until the Lease had expired, and renews it.
func TestMachine_IsReplaced(t *testing.T) {
	r := replaced(t, predecessor())
	for range 2 {
		if r.left {
			t.Fatal("it ends after one renewal, which may be a late one of a killed process")
		}
		r.store(predecessor())
		r.sends(list)
		r.answer(0)
		r.owns(Slots{})
	}
	if !r.left || !r.inUse || r.reason != ReasonIdentityInUse {
		t.Errorf("left: %v, in use: %v, reason %q", r.left, r.inUse, r.reason)
	}
}

// A process with the identity joins, and is killed after it has renewed the Lease while the next one waits.
func TestMachine_PredecessorIsKilledAfterRenewals(t *testing.T) {
	r := newRig(t, predecessor())
	r.sends(list)
	r.answer(0)
	for range 4 {
		r.store(predecessor())
		r.sends(list)
		r.answer(0)
	}
	killed := r.now
	for r.waitsForPredecessor() {
		r.sends(list)
		if r.answer(0); r.left {
			t.Fatalf("it has ended with %q, %v after the last renewal", r.reason, r.now-killed)
		}
	}
	if waited := r.now - killed; waited < usual.lease+usual.skew || waited > usual.lease+usual.skew+usual.retry {
		t.Errorf("waited %v", waited)
	}
	r.atOnce(update, list)
	r.owns(allSlots())
}

// The Lease of another process is left as it is.
func TestMachine_LeavesWhileAnotherProcessHasItsLease(t *testing.T) {
	r := replaced(t, predecessor())
	r.leave()
	if sent, wait := r.next(r.clock()); sent.verb != 0 || wait < time.Minute || r.left || r.reason != ReasonLeaving {
		t.Errorf("its followers have not let go, and it sends %d or waits %v, left: %v, reason %q", sent.verb, wait, r.left, r.reason)
	}
	r.letGo(r.grant.generation)
	if sent, _ := r.next(r.clock()); sent.verb != 0 || !r.left || r.inUse {
		t.Errorf("it sends %d, left: %v, in use: %v", sent.verb, r.left, r.inUse)
	}
}

// Processes join with identities that others have, and another program removes the annotation that names the process. At rest, one process of each
// identity is left. The other ones have ended.
func TestMachine_NeverTwoOwnersWithOneIdentity(t *testing.T) {
	seed := *simulationSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	groups := 60
	switch {
	case *simulatedHours > 0:
		groups = int(*simulatedHours)
	case testing.Short():
		groups = 15
	}
	for ; groups > 0; groups, seed = groups-1, seed+1 {
		s := newSimulation(seed)
		s.shared = true
		for range 3 {
			s.join()
		}
		for range 3 {
			s.latency, s.drain = s.upTo(s.timing.retry), s.upTo(s.timing.lease)
			for range 30 {
				switch p := s.any(); s.random.IntN(4) {
				case 0:
					if len(s.processes) < 10 {
						s.joinAs(p.identity)
					}
				case 1:
					s.removeWrite(p)
				default:
					s.fault(8)
				}
				s.runFor(s.upTo(s.timing.lease))
				if len(s.processes) == 0 { // two processes with one identity were left, one ended, and the other one had been killed
					s.join()
				}
			}
			s.calm()
			s.runFor(3 * s.term())
			seen := map[string]bool{}
			for _, p := range s.processes {
				if seen[p.identity] && s.problem == nil {
					s.problem = fmt.Errorf("at %v, two processes are %s", s.now, p.identity)
				}
				seen[p.identity] = true
			}
			if missing := allSlots().Minus(s.owned()); !missing.Empty() && s.problem == nil && len(seen) > 0 {
				s.problem = fmt.Errorf("at %v, nothing owns %v", s.now, missing)
			}
			if s.checkSeats(); s.problem != nil {
				t.Fatalf("-sharding.seed=%d, %+v: %v:\n%s", seed, s.timing, s.problem, strings.Join(s.log, "\n"))
			}
			if len(s.processes) == 0 {
				s.join()
			}
		}
	}
}

func TestMember_TakesItsLeaseBackAfterARestore(t *testing.T) {
	for name, write := range map[string]string{"an earlier process": "earlier/7", "none": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakecluster.NewLeaseServer()
				a, b := join(t, s.Client(), "a"), join(t, s.Client(), "b")
				share(t, a, b)
				s.Edit(a.machine.name, func(l *coordinationv1.Lease) {
					delete(l.Annotations, WriteAnnotation)
					if write != "" {
						l.Annotations[WriteAnnotation] = write
					}
				})
				begun := time.Now()
				waitFor(t, a, has(Slots.Empty))
				if status := a.Status(); status.Reason != ReasonLeaseChanged || status.Pending.Empty() {
					t.Errorf("status %+v", status)
				}
				waitFor(t, a, has(func(s Slots) bool { return !s.Empty() }))
				share(t, a, b)
				if took := time.Since(begun); took > 25*time.Second {
					t.Errorf("after %v", took)
				}
				leave(t, a, b)
			})
		})
	}
}

// The first process does not reach the server until the second one has its Lease.
func TestMember_EndsWhenAnotherProcessHasTakenItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		c := s.Client()
		first := join(t, c, "a")
		waitFor(t, first, has(all))
		c.SetHang(true)
		second := join(t, s.Client(), "a")
		for !second.Owns(anObject) {
			if time.Sleep(100 * time.Millisecond); first.Owns(anObject) && second.Owns(anObject) {
				t.Fatal("two owners")
			}
		}
		c.SetHang(false)
		begun := time.Now()
		for ended := false; !ended; {
			if first.Owns(anObject) || !second.Owns(anObject) || time.Since(begun) > time.Minute {
				t.Fatalf("first: %+v, second: %+v", first.Status(), second.Status())
			}
			select {
			case <-first.Done():
				ended = true
			case <-time.After(100 * time.Millisecond):
			}
		}
		if err := first.Err(); !errors.Is(err, ErrIdentityInUse) || first.Status().Reason != ReasonIdentityInUse {
			t.Errorf("error %v, status %+v", err, first.Status())
		}
		if took := time.Since(begun); took > 11*time.Second {
			t.Errorf("after %v", took)
		}
		leave(t, second)
	})
}
