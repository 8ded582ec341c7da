package churn

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// Two runs have the same servers.
func TestServerLag_IsTheLongest(t *testing.T) {
	const ms = time.Millisecond
	var set []time.Duration
	l := NewServerLag(func(d time.Duration) { set = append(set, d) })
	one, two := newWorld("one"), newWorld("two")
	l.join(one)
	l.ask(one, 300*ms)
	l.join(two)
	l.ask(two, 200*ms)
	l.ask(one, 0) // it settles
	l.ask(two, time.Hour)
	l.ask(one, 100*ms)
	resume, resumeBoth := l.pause(), l.pause()
	resume()
	l.ask(one, 500*ms)
	l.leave(two)
	resumeBoth()
	l.leave(one)
	if want := []time.Duration{300 * ms, 200 * ms, 2000 * ms, 0, 500 * ms, 0}; !slices.Equal(set, want) {
		t.Errorf("the server was behind by %v, want %v", set, want)
	}
	for world, want := range map[*World][]time.Duration{one: {0, 300 * ms, 200 * ms, 2000 * ms, 0, 500 * ms}, two: {300 * ms, 200 * ms, 2000 * ms, 0}} {
		var has []time.Duration
		for _, b := range world.lags {
			has = append(has, b.by)
		}
		if !slices.Equal(has, want) {
			t.Errorf("the world of %s has %v, want %v", world.Group, has, want)
		}
	}
}

func TestServerLag_NilIsNone(t *testing.T) {
	var l *ServerLag
	w := newWorld("one")
	l.join(w)
	l.ask(w, time.Second)
	l.pause()()
	l.leave(w)
	if len(w.lags) > 0 {
		t.Errorf("the server was behind: %v", w.lags)
	}
}

func TestWorld_BehindBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, begun := newWorld("one"), time.Now()
		after := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
		w.alternates(true, after(-20))
		w.recordLag(0, after(0))
		w.recordLag(time.Second, after(10))
		w.recordLag(2*time.Second, after(20))
		w.recordLag(0, after(30))
		w.recordLag(time.Second, after(40))
		for _, tc := range []struct{ from, to, want int }{{0, 9, 0}, {0, 10, 1}, {0, 15, 1}, {15, 19, 1}, {15, 20, 2}, {25, 50, 2}, {30, 35, 2}, {31, 35, 0}, {35, 45, 1}, {50, 60, 1}, {-9, -1, 0}} {
			if got := w.behindLocked(after(tc.from), after(tc.to)); got != time.Duration(tc.want)*time.Second {
				t.Errorf("from %d s to %d s: %v, want %d s", tc.from, tc.to, got, tc.want)
			}
		}
	})
}

// The lag that another run has asked for is not that of a run whose requests all go to the first server.
func TestWorld_BehindWhileRequestsAlternate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, begun := newWorld("one"), time.Now()
		after := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
		w.recordLag(time.Second, after(0))
		w.alternates(false, after(5))
		w.alternates(true, after(10))
		w.alternates(true, after(15)) // with another period
		w.alternates(false, after(20))
		w.alternates(false, after(25))
		w.alternates(true, after(40))
		for _, tc := range []struct{ from, to, want int }{{0, 9, 0}, {0, 10, 1}, {0, 60, 1}, {12, 13, 1}, {16, 17, 1}, {22, 30, 1}, {23, 39, 0}, {30, 40, 1}, {50, 60, 1}} {
			if got := w.behindLocked(after(tc.from), after(tc.to)); got != time.Duration(tc.want)*time.Second {
				t.Errorf("from %d s to %d s: %v, want %d s", tc.from, tc.to, got, tc.want)
			}
		}
	})
}

// The server gets the last time that was asked for while it got another one.
func TestServerLag_CallsAreNotConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		var calls []time.Duration
		goOn := make(chan struct{})
		l := NewServerLag(func(d time.Duration) {
			calls = append(calls, d)
			<-goOn
		})
		one, two := newWorld("one"), newWorld("two")
		l.join(one)
		l.join(two)
		var asking sync.WaitGroup
		asking.Go(func() { l.ask(one, 300*ms) })
		synctest.Wait()
		asking.Go(func() { l.ask(two, 400*ms) })
		synctest.Wait()
		asking.Go(func() { l.ask(two, 500*ms) })
		synctest.Wait()
		if want := []time.Duration{300 * ms}; !slices.Equal(calls, want) {
			t.Errorf("before the first call has returned, the calls are %v, want %v", calls, want)
		}
		close(goOn)
		asking.Wait()
		if want := []time.Duration{300 * ms, 500 * ms}; !slices.Equal(calls, want) {
			t.Errorf("the calls are %v, want %v", calls, want)
		}
	})
}

func TestRun_AlternatesUntilTheEnd(t *testing.T) {
	r := &run{Config: Config{Servers: []*rest.Config{{}, {}}}, world: newWorld("one"), faults: newFaults(t), second: http.DefaultTransport}
	ctx := t.Context()
	alternate := func(period string) func() {
		return func() {
			if err := r.disturb(ctx, NewOp(Alternate, nil, "period", period)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want bool // requests alternate after that
	}{
		{"alternate", alternate(""), true},
		{"another period", alternate("3"), true},
		{"the subject comes to rest", func() { r.heal(ctx) }, true},
		{"the end", alternate("0"), false},
		{"alternate again", alternate("2"), true},
		{"the subject comes to rest while a permission is revoked", func() {
			r.faults.inject(ctx, permissionName("t1", "", "list"), nil, faultproxy.Fail(http.StatusForbidden))
			r.heal(ctx)
		}, false},
		{"there is no second server", func() { r.second = nil; alternate("")() }, false},
	} {
		step.do()
		last := len(r.world.second) - 1
		_, injected := r.faults.active[alternation]
		if recorded := last >= 0 && r.world.second[last].ended.IsZero(); recorded != step.want || injected != step.want {
			t.Errorf("%s: recorded %v, injected %v, want %v", step.name, recorded, injected, step.want)
		}
	}
}
