package sharding

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestMachine_RepeatsFailedRequests(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.sends(update)
	sent := r.now
	r.now += 500 * time.Millisecond
	r.failed(r.clock(), unknown, errors.New("refused"))
	if r.err == nil {
		t.Error("no error")
	}
	r.sends(list)
	if gap := r.now - sent; gap < usual.retry*4/5 || gap > usual.retry {
		t.Errorf("repeats after %v", gap)
	}
	r.answer(0)
	if r.err == nil {
		t.Error("the list has ended the error of the update")
	}
	r.sends(update)
	r.answer(0)
	if r.err != nil {
		t.Errorf("error %v after an update", r.err)
	}
	// Lists fail, and the Lease is renewed.
	failing := r.now
	for range 10 {
		r.sends(list)
		r.failed(r.clock(), unknown, errors.New("refused"))
		r.sends(update)
		r.answer(0)
		if r.err == nil || r.failingSince != failing {
			t.Fatalf("error %v, since %v, want since %v", r.err, r.failingSince, failing)
		}
	}
	r.owns(allSlots())
	r.sends(list)
	r.answer(0)
	if r.err != nil {
		t.Errorf("error %v after a list", r.err)
	}
}

// A member whose requests fail acts until its term ends, and no longer.
func TestMachine_LetsItsSlotsGoIfAllRequestsFail(t *testing.T) {
	r := newRig(t)
	r.cycle()
	for end := r.grant.until.mono; r.now < end; {
		r.owns(allSlots())
		if sent, wait := r.next(r.clock()); sent.verb == 0 {
			r.now += wait
		} else {
			r.refuse()
		}
	}
	r.next(r.clock())
	if r.now != r.grant.until.mono || !r.grant.slots.Empty() || r.reason != ReasonNotRenewed {
		t.Errorf("at %v, the term ends at %v, slots %v, reason %q", r.now, r.grant.until, r.grant.slots, r.reason)
	}
}

// The error of a write ends when a list shows that it was executed, and that of a release, which another member may have done, by any list.
func TestMachine_ListsEndErrorsOfWrites(t *testing.T) {
	r := newRig(t)
	r.cycle()
	r.execute(r.sends(update))
	r.refuse()
	r.sends(list)
	r.answer(0)
	if r.err != nil {
		t.Errorf("error %v of a write that was executed", r.err)
	}
	r.store(other("zombie", Slots{}))
	for r.inFlight != release {
		if sent, wait := r.next(r.clock()); sent.verb == 0 {
			r.now += wait
		} else if sent.verb != release {
			r.answer(0)
		}
	}
	r.refuse()
	if r.err == nil {
		t.Error("no error of a release")
	}
	r.sends(list)
	r.answer(0)
	if r.err != nil {
		t.Errorf("error %v of a release after a list", r.err)
	}
}

// A Lease of this name that has lost its label is not in any list, and can't be created.
func TestMachine_RepeatedConflictsAreRare(t *testing.T) {
	r := newRig(t)
	begun, writes := r.now, 0
	for r.now < begun+time.Minute {
		switch sent, wait := r.next(r.clock()); sent.verb {
		case 0:
			r.now += wait
		case create:
			if writes++; writes > 100 {
				t.Fatalf("%d writes in %v", writes, r.now-begun)
			}
			r.failed(r.clock(), conflict, errors.New("it exists"))
		default:
			r.answer(0)
		}
	}
	if most := int(time.Minute/usual.retry)*5/4 + 2; writes > most || writes < most/2 {
		t.Errorf("%d writes in a minute", writes)
	}
}

// Another program may change or delete the Lease after each write, and lists may come from a server that does not have it.
func TestMachine_ALeaseThatIsNeverAsWrittenIsRare(t *testing.T) {
	for name, change := range map[string]func(r *rig, own record){
		"it is not in the list":     func(r *rig, own record) { r.drop(own.name) },
		"another process writes it": func(r *rig, own record) { own.instance, own.identity = "other", ""; r.store(&own) },
		"it claims nothing":         func(r *rig, own record) { own.claims = Slots{}; r.store(&own) },
		"it has another seat":       func(r *rig, own record) { own.seat = 7; r.store(&own) },
		"it was released":           func(r *rig, own record) { own.identity = ""; r.store(&own) },
		"it leaves":                 func(r *rig, own record) { own.leaving = true; r.store(&own) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			begun, writes := r.now, 0
			for r.now < begun+time.Minute {
				switch sent, wait := r.next(r.clock()); sent.verb {
				case 0:
					r.now += wait
				case create, update:
					if writes++; writes > 100 {
						t.Fatalf("%d writes in %v", writes, r.now-begun)
					}
					r.answer(0)
					change(r, *r.stored(r.name))
				default:
					r.answer(0)
				}
			}
			if most := int(time.Minute/usual.retry)*5/4 + 3; writes > most || writes < most/2 {
				t.Errorf("%d writes in a minute, want at most %d", writes, most)
			}
		})
	}
}

func TestMachine_HungRequestLeavesTimeForAnother(t *testing.T) {
	r := newRig(t)
	r.cycle()
	w := r.sends(update)
	r.now += w.timeout
	r.failed(r.clock(), unknown, errors.New("timeout"))
	r.atOnce(list, update, list)
	r.owns(allSlots())
	if r.now != r.sent.mono {
		t.Errorf("at %v, sent at %v", r.now, r.sent.mono)
	}
}

// A member that may not use Leases says so in its status and, after RenewDeadline, once in the log.
func TestMember_SaysWhyItGetsNoSlots(t *testing.T) {
	for _, forbidden := range []string{"list", "create", "update"} {
		t.Run(forbidden, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines, logged := newLog(t)
				c := fakecluster.NewLeaseServer().Client()
				cause := apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("no"))
				c.SetFault(func(verb string) (before, after error) {
					if verb == forbidden {
						return cause, nil
					}
					return nil, nil
				})
				m, err := Join(klog.NewContext(t.Context(), lines), c, config("a"))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(9 * time.Second)
				if logged("allow the member to") > 0 {
					t.Error("it has written to the log before RenewDeadline")
				}
				for range 100 {
					time.Sleep(300 * time.Millisecond)
					var failed *RequestError
					if err := m.Status().Err; !errors.As(err, &failed) || failed.Verb != forbidden || failed.Namespace != "ns" || !apierrors.IsForbidden(err) {
						t.Fatalf("error %v", err)
					}
				}
				if got := logged("allow the member to"); got != 1 {
					t.Errorf("%d lines in the log", got)
				}
				c.SetFault(nil)
				waitFor(t, m, has(all))
				time.Sleep(3 * time.Second)
				if err := m.Status().Err; err != nil {
					t.Errorf("error %v, and all requests succeed", err)
				}
				leave(t, m)
			})
		})
	}
}

// newLog returns a logger, and a function that counts a text in its lines.
func newLog(t *testing.T) (klog.Logger, func(text string) int) {
	t.Helper()
	lines := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	return lines, func(text string) int {
		return strings.Count(lines.GetSink().(ktesting.Underlier).GetBuffer().String(), text)
	}
}

func TestMember_TheLogSaysWhatToDoAboutLostSlots(t *testing.T) {
	for text, happens := range map[string]struct{ inUse, edited bool }{
		"let only members write Leases": {edited: true},
		"give each process its own":     {inUse: true},
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakecluster.NewLeaseServer()
				if happens.inUse {
					first := join(t, s.Client(), "a")
					waitFor(t, first, has(all))
					defer leave(t, first)
				}
				lines, logged := newLog(t)
				m, err := Join(klog.NewContext(t.Context(), lines), s.Client(), config("a"))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if happens.inUse && m.Err() == nil {
					t.Error("it has not ended after a minute")
					m.abandon(nil)
				}
				if happens.edited {
					s.Edit(m.machine.name, func(l *coordinationv1.Lease) { l.Annotations[SlotsAnnotation] = "" })
				}
				time.Sleep(time.Minute)
				if got := logged(text); got != 1 {
					t.Errorf("%d lines have %q", got, text)
				}
				if err := m.Leave(t.Context()); errors.Is(err, ErrIdentityInUse) != happens.inUse {
					t.Errorf("Leave: %v", err)
				}
			})
		})
	}
}

func TestMember_TheLogNamesFollowersThatDoNotLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		lines, logged := newLog(t)
		m, err := Join(klog.NewContext(context.WithoutCancel(t.Context()), lines), s.Client(), config("a"))
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, m, has(all))
		follower := m.Follow("timer")
		for round := range 2 {
			generation := m.View().Generation
			b := join(t, s.Client(), "b")
			lost := waitFor(t, m, func(v View) bool { return v.Generation > generation })
			follower.LetGo(generation)
			const text = "have not let go"
			time.Sleep(m.cfg.RenewDeadline - time.Second)
			if got := logged(text); got != round {
				t.Errorf("round %d: %d lines before RenewDeadline", round, got)
			}
			time.Sleep(time.Minute)
			if got, named := logged(text), logged(`followers=["timer"]`); got != round+1 || named != got {
				t.Errorf("round %d: %d lines, %d with the follower", round, got, named)
			}
			c := join(t, s.Client(), "c")
			more := waitFor(t, m, func(v View) bool { return v.Generation > lost.Generation })
			time.Sleep(time.Minute)
			if got := logged(text); got != round+1 {
				t.Errorf("round %d: %d lines after one more has joined", round, got)
			}
			follower.LetGo(more.Generation)
			waitFor(t, b, func(v View) bool { return !v.Slots.Empty() })
			leave(t, b, c)
			waitFor(t, m, has(all))
		}
		follower.Stop()
		leave(t, m)
	})
}

// Without the label, no list shows the Lease, and it can't be created. The member puts the label back, unless the Lease is not that of a member.
func TestMember_PutsTheLabelOfItsLeaseBack(t *testing.T) {
	for name, tc := range map[string]struct {
		foreign bool
		change  func(*coordinationv1.Lease)
	}{
		"stripped":         {false, func(l *coordinationv1.Lease) { l.Labels = nil }},
		"of another group": {true, func(l *coordinationv1.Lease) { l.Labels[GroupLabel] = "gadgets" }},
		"of no member":     {true, func(l *coordinationv1.Lease) { l.Labels, l.Annotations = nil, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakecluster.NewLeaseServer()
				a, b := join(t, s.Client(), "a"), join(t, s.Client(), "b")
				share(t, a, b)
				s.Edit(a.machine.name, tc.change)
				edited := s.Lease(a.machine.name)
				var without time.Duration
				var failed error
				for range 500 {
					time.Sleep(10 * time.Millisecond)
					status := a.Status()
					if failed == nil {
						failed = status.Err
					}
					if status.Held.Empty() {
						without += 10 * time.Millisecond
					}
				}
				got := s.Lease(a.machine.name)
				if tc.foreign {
					if status := a.Status(); !apierrors.IsAlreadyExists(status.Err) || !status.Held.Empty() || got.ResourceVersion != edited.ResourceVersion {
						t.Errorf("status %+v, the Lease is %v", status, got)
					}
					s.Edit(a.machine.name, func(l *coordinationv1.Lease) { l.Labels = map[string]string{GroupLabel: "widgets"} })
					time.Sleep(30 * time.Second)
				} else if got.UID != edited.UID || got.Labels[GroupLabel] != "widgets" || without > 500*time.Millisecond || failed != nil {
					t.Errorf("without slots for %v, error %v, the Lease is %v", without, failed, got)
				}
				if status := a.Status(); status.Held.Empty() || status.Reason != ReasonNone || status.Err != nil {
					t.Errorf("status %+v", status)
				}
				share(t, a, b)
				leave(t, a, b)
			})
		})
	}
}

// Another program may remove the label again and again.
func TestMember_PausesIfTheLabelIsRemovedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		c := s.Client()
		m := join(t, c, "a")
		share(t, m)
		creates := 0
		c.SetFault(func(verb string) (before, after error) {
			switch verb {
			case "list":
				s.Edit(m.machine.name, func(l *coordinationv1.Lease) { l.Labels = nil })
			case "create":
				creates++
			}
			return nil, nil
		})
		time.Sleep(20 * time.Second)
		if status := m.Status(); creates < 5 || creates > 20 || !apierrors.IsAlreadyExists(status.Err) {
			t.Errorf("%d requests to create the Lease in 20 s, want one after each RetryPeriod; status %+v", creates, status)
		}
		c.SetFault(nil)
		share(t, m)
		leave(t, m)
	})
}

func TestRequestError_SaysWhatToDo(t *testing.T) {
	forbidden := &RequestError{Verb: "list", Namespace: "ns", Err: apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("no"))}
	if got, want := forbidden.Error(), `list leases in namespace ns: leases.coordination.k8s.io is forbidden: no: allow the member to create, update, list and delete leases there`; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	exists := &RequestError{Verb: "create", Namespace: "ns", Err: apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), "widgets-1")}
	if got, want := exists.Error(), `create leases in namespace ns: leases.coordination.k8s.io "widgets-1" already exists: it is not in the group without the label sharding.gvrkit.io/group: put the label back, or delete the Lease`; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	other := &RequestError{Verb: "update", Namespace: "ns", Err: io.ErrUnexpectedEOF}
	if got, want := other.Error(), "update leases in namespace ns: unexpected EOF"; got != want || !errors.Is(other, io.ErrUnexpectedEOF) {
		t.Errorf("text %q, want %q", got, want)
	}
}

// There is nothing to wait for if the member has no Lease.
func TestMember_LeavesAtOnceBeforeItHasALease(t *testing.T) {
	for _, tc := range []struct {
		name string
		ruin func(c *fakecluster.LeaseClient)
	}{
		{"lists hang", func(c *fakecluster.LeaseClient) { c.SetHang(true) }},
		{"lists fail", func(c *fakecluster.LeaseClient) {
			c.SetFault(func(string) (before, after error) { return errors.New("no"), nil })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakecluster.NewLeaseServer()
				c := s.Client()
				tc.ruin(c)
				m := join(t, c, "a")
				time.Sleep(time.Minute + time.Second)
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if err := m.Leave(ctx); err != nil || time.Since(begun) > 0 || m.Status().Reason != ReasonLeft || s.Count() > 0 {
					t.Errorf("after %v, error %v, reason %s", time.Since(begun), err, m.Status().Reason)
				}
			})
		})
	}
}

// A member that joins while the API server is down waits for the others as one that has been in the group does.
func TestMachine_LeasesDoNotExpireWhileTheServerIsDownForAMemberThatJoins(t *testing.T) {
	for name, others := range map[string][]*record{"first write": nil, "predecessor": {predecessor()}} {
		t.Run(name, func(t *testing.T) {
			_, rest := shares("a")
			r := newRig(t, append(others, other("a", rest))...)
			r.sends(list)
			r.answer(0)
			for end := r.now + time.Minute; r.now < end; {
				if sent, wait := r.next(r.clock()); sent.verb == 0 {
					r.now += wait
				} else {
					r.refuse()
				}
			}
			back := r.now
			for !r.peers[0].expired && r.now < back+time.Minute {
				if sent, wait := r.next(r.clock()); sent.verb == 0 {
					r.now += wait
				} else {
					r.answer(0)
				}
			}
			if waited := r.now - back; waited < usual.lease+usual.skew || waited > usual.lease+usual.skew+2*usual.retry {
				t.Errorf("the Lease of the other one has expired after %v", waited)
			}
		})
	}
}

// Without an outage, the Leases of others expire while the member waits for its predecessor.
func TestMachine_LeasesExpireWhileAMemberWaitsForItsPredecessor(t *testing.T) {
	_, rest := shares("a")
	r := newRig(t, predecessor(), other("a", rest))
	begun := r.now
	for r.grant.slots != allSlots() && r.now < begun+time.Minute {
		if sent, wait := r.next(r.clock()); sent.verb == 0 {
			r.now += wait
		} else {
			r.answer(0)
		}
	}
	if waited := r.now - begun; waited > usual.lease+usual.skew+2*usual.retry {
		t.Errorf("it has all slots after %v", waited)
	}
}

// Leave waits for the followers also if the Lease is deleted meanwhile.
func TestMember_LeavesWithoutALeaseWhenFollowersHaveLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		m := join(t, s.Client(), "a")
		follower := m.Follow("slow")
		view := waitFor(t, m, has(all))
		follower.LetGo(view.Generation)
		left := make(chan error, 1)
		go func() { left <- m.Leave(context.WithoutCancel(t.Context())) }()
		time.Sleep(time.Second)
		l := s.Lease(m.machine.name)
		of := &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}
		if err := s.Client().Delete(t.Context(), l.Name, metav1.DeleteOptions{Preconditions: of}); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-left:
			t.Errorf("it has left with %v, and its follower has not let go", err)
		case <-time.After(time.Hour):
			if status := m.Status(); status.Reason != ReasonLeaving || !slices.Equal(status.WaitsFor, []string{"slow"}) || s.Count() > 0 {
				t.Errorf("status %+v, %d Leases", status, s.Count())
			}
			begun := time.Now()
			follower.LetGo(m.View().Generation)
			if err := <-left; err != nil || time.Since(begun) > 0 {
				t.Errorf("after %v, error %v", time.Since(begun), err)
			}
		}
	})
}

// client-go's fake clientset does not version objects: all writes would seem to be of one version.
func TestMember_RefusesServersWithoutVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		membership, end := context.WithTimeout(t.Context(), time.Hour)
		defer end()
		m, err := Join(membership, fake.NewClientset(), config("a"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if status := m.Status(); !errors.Is(status.Err, errNoVersion) || !m.View().Slots.Empty() {
				t.Fatalf("status %+v", status)
			}
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Leave(ctx); !errors.Is(err, errNoVersion) || time.Since(begun) != time.Minute {
			t.Errorf("Leave after %v: %v", time.Since(begun), err)
		}
	})
}
