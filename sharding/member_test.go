package sharding

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(identity string) Config {
	return Config{Namespace: "ns", Name: "widgets", Identity: identity}
}

// join joins a member that is ended at the end of the test.
func join(t *testing.T, c *fakecluster.LeaseClient, identity string) *Member {
	t.Helper()
	m, err := Join(context.WithoutCancel(t.Context()), c, config(identity))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// leave ends members.
func leave(t *testing.T, members ...*Member) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Hour)
	defer cancel()
	for _, m := range members {
		if err := m.Leave(ctx); err != nil {
			t.Errorf("%s: %v", m.cfg.Identity, err)
		}
	}
}

// waitFor waits until a member has what want says.
func waitFor(t *testing.T, m *Member, want func(View) bool) View {
	t.Helper()
	deadline := time.After(time.Hour)
	for {
		changed := m.Changed()
		if view := m.View(); want(view) {
			return view
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s has %+v after an hour", m.cfg.Identity, m.Status())
		}
	}
}

// share waits until members have all slots, and each of them has some.
func share(t *testing.T, members ...*Member) {
	t.Helper()
	for range 3600 {
		var together Slots
		each := true
		for _, m := range members {
			together = together.Union(m.View().Slots)
			each = each && !m.View().Slots.Empty()
		}
		if each && together == allSlots() {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatal("they do not share all slots after an hour")
}

func has(n func(Slots) bool) func(View) bool { return func(v View) bool { return n(v.Slots) } }

func all(s Slots) bool { return s == allSlots() }

var anObject = types.UID("6b1c5d3e-7f0a-4f0e-9a56-1f7d2f2f8a11")

func TestJoin_RefusesAnInvalidConfig(t *testing.T) {
	if _, err := Join(t.Context(), fakecluster.NewLeaseServer().Client(), Config{}); !errors.Is(err, ErrInvalidConfig) {
		t.Errorf("error %v", err)
	}
}

func TestMember_AloneHasAllSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		m := join(t, s.Client(), "a")
		if m.Owns(anObject) || m.View().Generation != 1 {
			t.Error("it owns an object before it has a Lease")
		}
		view := waitFor(t, m, has(all))
		if !m.Owns(anObject) || m.Selector() != "" || view.Generation != 2 {
			t.Errorf("owns: %v, selector %q, view %+v", m.Owns(anObject), m.Selector(), view)
		}
		time.Sleep(time.Hour)
		if status := m.Status(); status.Generation != 2 || status.Reason != ReasonNone || status.Held != allSlots() || status.Err != nil {
			t.Errorf("status after an hour: %+v", status)
		}
		leave(t, m)
		if m.Owns(anObject) || m.Err() != nil || m.Status().Reason != ReasonLeft || s.Count() > 0 {
			t.Errorf("after it has left: %+v, error %v, %d Leases", m.Status(), m.Err(), s.Count())
		}
	})
}

func TestMember_LeaseIsReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		c := s.Client()
		m := join(t, c, "Pod_1")
		waitFor(t, m, has(all))
		begun := time.Now()
		name := leaseName("widgets", "Pod_1")
		s.Edit(name, func(l *coordinationv1.Lease) { l.Labels["theirs"], l.Annotations["theirs"] = "x", "y" })
		time.Sleep(5 * time.Second)
		c.SetFault(func(verb string) (before, after error) { // only writes succeed
			if verb == "list" {
				return errServer, nil
			}
			return nil, nil
		})
		time.Sleep(6 * time.Second)
		c.SetFault(nil)
		got := s.Lease(name)
		write := got.Annotations[WriteAnnotation]
		delete(got.Annotations, WriteAnnotation)
		renewed := got.Spec.RenewTime.Time
		want := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "widgets-5eb3fc96b61bbfe8", UID: got.UID, ResourceVersion: got.ResourceVersion,
				Labels:      map[string]string{GroupLabel: "widgets", "theirs": "x"},
				Annotations: map[string]string{SlotsAnnotation: "0-255", SeatAnnotation: "1", "theirs": "y"},
			},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: new("Pod_1"), LeaseDurationSeconds: new(int32(15)),
				AcquireTime: got.Spec.AcquireTime, RenewTime: got.Spec.RenewTime,
			},
		}
		if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(write, "/") || renewed.Before(begun) || got.Spec.AcquireTime.After(begun) {
			t.Errorf("%s, write %q, acquired %v, renewed %v", diff, write, got.Spec.AcquireTime, renewed)
		}
		leave(t, m)
	})
}

func TestMember_ConflictsAreNoFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		m := join(t, s.Client(), "a")
		waitFor(t, m, has(all))
		for i := range 1000 {
			if i%50 == 0 {
				s.Edit(m.machine.name, func(*coordinationv1.Lease) {})
			}
			time.Sleep(50 * time.Millisecond)
			if err := m.Status().Err; err != nil {
				t.Fatal(err)
			}
		}
		leave(t, m)
	})
}

func TestMember_SharesSlotsWithOneThatJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		a := join(t, s.Client(), "a")
		waitFor(t, a, has(all))
		b := join(t, s.Client(), "b")
		begun := time.Now()
		got := waitFor(t, b, func(v View) bool { return v.Slots.Union(a.View().Slots) == allSlots() && !v.Slots.Empty() })
		if !got.Slots.Intersect(a.View().Slots).Empty() {
			t.Errorf("both have %v", got.Slots.Intersect(a.View().Slots))
		}
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("after %v", took)
		}
		if a.Owns(anObject) == b.Owns(anObject) {
			t.Error("an object has two owners, or none")
		}
		status := a.Status()
		if len(status.Members) != 1 || status.Members[0].Identity != "b" || status.Members[0].Claims != got.Slots || status.Seat+status.Members[0].Seat != 3 {
			t.Errorf("status %+v", status)
		}
		leave(t, a)
		if l := s.Lease(a.machine.name); *l.Spec.HolderIdentity != "" || l.Annotations[SlotsAnnotation] != "" || l.Annotations[LeavingAnnotation] != "true" {
			t.Errorf("the Lease of a member that has left is %v", l)
		}
		begun = time.Now()
		waitFor(t, b, has(all))
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("b has all slots %v after a has left", took)
		}
		time.Sleep(5 * time.Minute)
		if n := s.Count(); n != 1 {
			t.Errorf("%d Leases, want one", n)
		}
		leave(t, b)
	})
}

func TestMember_WaitsForAllFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		a := join(t, s.Client(), "a")
		fast, slow, last := a.Follow("fast"), a.Follow("slow"), a.Follow("last")
		before := waitFor(t, a, has(all))
		last.LetGo(1000)
		last.Loaded(1000)
		fast.LetGo(before.Generation)
		slow.LetGo(before.Generation)
		fast.Loaded(before.Generation)
		if got := a.Status().Loading; !slices.Equal(got, []string{"slow"}) {
			t.Errorf("loading: %v", got)
		}
		b := join(t, s.Client(), "b")
		after := waitFor(t, a, func(v View) bool { return v.Generation > before.Generation })
		fast.LetGo(after.Generation)
		time.Sleep(time.Hour)
		lost := before.Slots.Minus(after.Slots)
		if status := a.Status(); status.LettingGo != lost || !slices.Equal(status.WaitsFor, []string{"slow"}) {
			t.Errorf("status %+v", status)
		}
		if status := b.Status(); !status.Held.Empty() || status.Blocked != lost || status.Pending != lost {
			t.Errorf("status of b %+v", status)
		}
		slow.LetGo(after.Generation)
		begun := time.Now()
		waitFor(t, b, has(func(s Slots) bool { return s == lost }))
		if took := time.Since(begun); took > time.Second {
			t.Errorf("b has its slots after %v", took)
		}
		leave(t, b)
		regained := waitFor(t, a, has(all))
		fast.LetGo(regained.Generation)
		fast.Stop()
		left := make(chan struct{})
		go func() {
			leave(t, a)
			close(left)
		}()
		time.Sleep(time.Hour - time.Second)
		select {
		case <-left:
			t.Error("it leaves before slow has let go")
		default:
		}
		slow.Stop()
		last.Stop()
		<-left
		slow.LetGo(100) // has no effect
	})
}

func TestMember_LeaveEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		a := join(t, s.Client(), "a")
		a.Follow("stuck")
		waitFor(t, a, has(all))
		cause := errors.New("no time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		begun := time.Now()
		time.AfterFunc(time.Hour, func() { a.abandon(errors.New("an hour has passed")) })
		err := a.Leave(ctx)
		var leaveError *LeaveError
		if !errors.As(err, &leaveError) || !errors.Is(err, cause) || !slices.Equal(leaveError.WaitsFor, []string{"stuck"}) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begun); took != time.Minute || !errors.Is(a.Err(), cause) {
			t.Errorf("after %v, error %v", took, a.Err())
		}
		if s.Lease(a.machine.name).Annotations[SlotsAnnotation] != "0-255" {
			t.Errorf("the Lease is %v", s.Lease(a.machine.name))
		}
	})
}

func TestMember_NilArgumentsAreErrors(t *testing.T) {
	var none *fakecluster.LeaseClient
	if _, err := Join(t.Context(), nil, config("a")); !errors.Is(err, errNilClient) {
		t.Errorf("no client: %v", err)
	}
	if _, err := Join(t.Context(), none, config("a")); !errors.Is(err, errNilClient) {
		t.Errorf("a nil pointer as client: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		if _, err := Join(nil, s.Client(), config("a")); !errors.Is(err, errNilContext) { //nolint:staticcheck // the nil context is the subject
			t.Errorf("no context: %v", err)
		}
		a := join(t, s.Client(), "a")
		waitFor(t, a, has(all))
		if err := a.Leave(nil); !errors.Is(err, errNilContext) { //nolint:staticcheck // the nil context is the subject
			t.Errorf("Leave without a context: %v", err)
		}
		if !has(all)(a.View()) {
			t.Error("the member has let slots go")
		}
		leave(t, a)
	})
}

func TestMember_LeavesWhenTheContextOfJoinEnds(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := fakecluster.NewLeaseServer()
			ctx, cancel := context.WithCancel(t.Context())
			a, err := Join(ctx, s.Client(), config("a"))
			if err != nil {
				t.Fatal(err)
			}
			if stuck {
				a.Follow("stuck")
			}
			waitFor(t, a, has(all))
			cancel()
			begun := time.Now()
			select {
			case <-a.Done():
			case <-time.After(time.Hour):
				t.Error("it does not end")
				a.abandon(nil)
			}
			took := time.Since(begun)
			if !stuck && (a.Err() != nil || took > time.Second || s.Count() > 0) || stuck && (a.Err() == nil || took != 10*time.Second) {
				t.Errorf("after %v, error %v", took, a.Err())
			}
			if a.Owns(anObject) {
				t.Error("it owns an object")
			}
		})
	}
}

func TestMember_LetsGoWhenTheServerIsDown(t *testing.T) {
	for name, begin := range map[string]func(*fakecluster.LeaseClient){
		"refuses": func(c *fakecluster.LeaseClient) {
			c.SetFault(func(string) (error, error) { return errServer, nil })
		},
		"hangs": func(c *fakecluster.LeaseClient) { c.SetHang(true) },
		"executes without a response": func(c *fakecluster.LeaseClient) {
			c.SetFault(func(verb string) (error, error) { return nil, errServer })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakecluster.NewLeaseServer()
				c := s.Client()
				a := join(t, c, "a")
				waitFor(t, a, has(all))
				begin(c)
				begun := time.Now()
				waitFor(t, a, has(Slots.Empty))
				took := time.Since(begun)
				if took > 10*time.Second || took < 7*time.Second {
					t.Errorf("lets go after %v", took)
				}
				if status := a.Status(); status.Reason != ReasonNotRenewed || status.Err == nil || time.Since(status.Since) != 0 {
					t.Errorf("status %+v", status)
				}
				time.Sleep(time.Hour)
				c.SetFault(nil)
				c.SetHang(false)
				begun = time.Now()
				waitFor(t, a, has(all))
				if took := time.Since(begun); took > 6*time.Second {
					t.Errorf("has its slots again after %v", took)
				}
				if status := a.Status(); status.Reason != ReasonNone || status.Err != nil {
					t.Errorf("status %+v", status)
				}
				leave(t, a)
			})
		})
	}
}

func TestMember_SurvivesAShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		c := s.Client()
		a := join(t, c, "a")
		view := waitFor(t, a, has(all))
		for range 100 {
			c.SetFault(func(string) (error, error) { return errServer, nil })
			time.Sleep(6 * time.Second)
			c.SetFault(nil)
			time.Sleep(3 * time.Second)
		}
		if a.View() != view {
			t.Errorf("the view is %+v", a.View())
		}
		leave(t, a)
	})
}

// A process that is stopped by a signal runs no timers: Owns must not depend on them. This member has no goroutine.
func TestMember_StoppedProcessOwnsNothingAfterItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg, err := config("a").withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		m := newMember(t.Context(), fakecluster.NewLeaseServer().Client(), cfg)
		m.granted.Store(&grant{slots: allSlots(), until: m.now().add(10 * time.Second), generation: 2})
		time.Sleep(10*time.Second - 1)
		if !m.Owns(anObject) {
			t.Error("its term ends early")
		}
		time.Sleep(time.Nanosecond)
		if m.Owns(anObject) || m.View().Slots.Empty() {
			t.Errorf("owns: %v, view %+v", m.Owns(anObject), m.View())
		}
	})
}

func TestMember_TakesTheSlotsOfOneThatIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		c := s.Client()
		a, b := join(t, c, "a"), join(t, s.Client(), "b")
		share(t, a, b)
		c.SetHang(true) // for the others, a is gone
		begun := time.Now()
		waitFor(t, b, has(all))
		if took := time.Since(begun); took < 15*time.Second || took > 20*time.Second {
			t.Errorf("b has all slots after %v", took)
		}
		if status := b.Status(); !status.Members[0].Expired {
			t.Errorf("status of b %+v", status)
		}
		time.Sleep(5 * time.Minute)
		if n := s.Count(); n != 1 {
			t.Errorf("%d Leases, want one", n)
		}
		c.SetHang(false)
		share(t, a, b)
		leave(t, a, b)
	})
}

// A Lease that is released keeps what other programs have written to it, and its UID: without it, an update would create the Lease if it was deleted.
func TestMember_ReleasesTheLeaseOfAnotherMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		c := s.Client()
		a, b := join(t, c, "a"), join(t, s.Client(), "b")
		share(t, a, b)
		s.Edit(a.machine.name, func(l *coordinationv1.Lease) { l.Labels["theirs"], l.Annotations["theirs"] = "x", "y" })
		time.Sleep(5 * time.Second)
		c.SetHang(true) // for b, a is gone
		time.Sleep(time.Second)
		before := s.Lease(a.machine.name)
		time.Sleep(25 * time.Second)
		got := s.Lease(a.machine.name)
		want := before.DeepCopy()
		want.ResourceVersion = got.ResourceVersion
		want.Annotations[SlotsAnnotation] = ""
		want.Spec.HolderIdentity, want.Spec.AcquireTime, want.Spec.RenewTime = new(""), got.Spec.AcquireTime, got.Spec.RenewTime
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		c.SetHang(false)
		share(t, a, b)
		if l := s.Lease(a.machine.name); l.Labels["theirs"] != "x" || l.Annotations["theirs"] != "y" || l.UID != before.UID {
			t.Errorf("later, the Lease is %+v", l)
		}
		leave(t, a, b)
	})
}

func TestMember_IdentityIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		first := join(t, s.Client(), "a")
		waitFor(t, first, has(all))
		second := join(t, s.Client(), "a")
		begun := time.Now()
		<-second.Done()
		var inUse *IdentityError
		if err := second.Err(); !errors.Is(err, ErrIdentityInUse) || !errors.As(err, &inUse) || inUse.Identity != "a" || inUse.Lease != second.machine.name {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begun); took > 20*time.Second || second.Status().Reason != ReasonIdentityInUse {
			t.Errorf("after %v, status %+v", took, second.Status())
		}
		if !first.Owns(anObject) {
			t.Error("the first member has lost its slots")
		}
		if err := second.Leave(t.Context()); !errors.Is(err, ErrIdentityInUse) {
			t.Errorf("Leave: %v", err)
		}
		leave(t, first)
	})
}

func TestMember_RestartsWithTheSameIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		first := join(t, s.Client(), "a")
		first.Follow("stuck")
		waitFor(t, first, has(all))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Leave(ctx); err == nil {
			t.Error("it has left")
		}
		second := join(t, s.Client(), "a")
		begun := time.Now()
		waitFor(t, second, has(all))
		if took := time.Since(begun); took < 15*time.Second || took > 20*time.Second {
			t.Errorf("after %v", took)
		}
		leave(t, second)
	})
}

func TestMember_HealsAfterConflictsAndLostResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		c := s.Client()
		a := join(t, c, "a")
		waitFor(t, a, has(all))
		random, faults := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(2, 2))
		c.SetFault(func(string) (before, after error) {
			switch faults.IntN(12) {
			case 0:
				return errServer, nil
			case 1:
				return nil, errServer
			}
			return nil, nil
		})
		for range 1000 {
			time.Sleep(time.Second)
			if random.IntN(3) == 0 {
				s.Edit(a.machine.name, func(*coordinationv1.Lease) {})
			}
		}
		if lost := a.View().Generation / 2; lost > 20 {
			t.Errorf("it has lost its slots %d times", lost)
		}
		c.SetFault(nil)
		time.Sleep(5 * time.Second)
		if !all(a.View().Slots) || a.Status().Reason != ReasonNone {
			t.Errorf("status %+v", a.Status())
		}
		leave(t, a)
	})
}

// The core is simulated elsewhere; this is the real member, with a small group.
func TestMembers_NeverTwoOwners(t *testing.T) {
	const members = 12
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	synctest.Test(t, func(t *testing.T) {
		s := fakecluster.NewLeaseServer()
		random := rand.New(rand.NewPCG(rand.Uint64(), 1))
		type process struct {
			*Member
			client   *fakecluster.LeaseClient
			follower sync.WaitGroup
			stop     context.CancelFunc
		}
		var running []*process
		begin := func(identity string) {
			ctx, stop := context.WithCancel(t.Context())
			p := &process{client: s.Client(), stop: stop}
			p.Member = join(t, p.client, identity)
			running = append(running, p)
			follower := p.Follow("follower")
			slow := time.Duration(random.IntN(3000)) * time.Millisecond
			p.follower.Go(func() {
				defer follower.Stop()
				for {
					changed := p.Changed()
					view := p.View()
					select {
					case <-time.After(slow):
						follower.LetGo(view.Generation)
						follower.Loaded(view.Generation)
					case <-ctx.Done():
						return
					}
					select {
					case <-changed:
					case <-ctx.Done():
						return
					}
				}
			})
		}
		check := func() (all Slots) {
			for i, p := range running {
				g := p.granted.Load()
				if g.until.reached(p.now()) {
					continue
				}
				for _, q := range running[:i] {
					if h := q.granted.Load(); !h.until.reached(q.now()) && !g.slots.Intersect(h.slots).Empty() {
						t.Fatalf("%s and %s own %v", p.cfg.Identity, q.cfg.Identity, g.slots.Intersect(h.slots))
					}
				}
				all = all.Union(g.slots)
			}
			return all
		}
		for i := range members {
			begin(string(rune('a' + i)))
		}
		begun := 0 // so that each has another identity
		for round := range rounds {
			for range 10 {
				p := running[random.IntN(len(running))]
				switch random.IntN(6) {
				case 0:
					p.client.SetHang(true)
				case 1:
					p.client.SetFault(func(string) (before, after error) { return errServer, nil })
				case 2:
					p.client.SetFault(func(string) (before, after error) { return nil, errServer })
				case 3:
					p.client.SetHang(false)
					p.client.SetFault(nil)
				case 4:
					if len(running) > 3 {
						running = slices.DeleteFunc(running, func(q *process) bool { return q == p })
						p.client.SetHang(false)
						p.client.SetFault(nil)
						p.stop()
						p.follower.Wait()
						leave(t, p.Member)
					}
				case 5:
					if len(running) < members {
						begun++
						begin(string(rune('a'+random.IntN(26))) + strconv.Itoa(begun))
					}
				}
				for range 20 {
					time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
					check()
				}
			}
			for _, p := range running {
				p.client.SetHang(false)
				p.client.SetFault(nil)
			}
			for range 200 {
				time.Sleep(150 * time.Millisecond)
				check()
			}
			if missing := allSlots().Minus(check()); !missing.Empty() {
				t.Fatalf("round %d: nothing owns %v", round, missing)
			}
		}
		for _, p := range running {
			p.stop()
			p.follower.Wait()
			leave(t, p.Member)
		}
	})
}
