// Package sharded_test shares the objects of a real API server among processes, which are killed, stopped and added while objects change, and
// checks what each of them handles.
//
//	go test -v ./test/envtest/sharded                          # 1,000 objects, on each server
//	GOGC=400 go test -v ./test/envtest/sharded -timeout 0 -parallel 1 -args \
//	  -sharded.objects 20000 -sharded.rate 500 -sharded.writes 5000 -sharded.lease 15s
//
// With GOGC=400, two cores are enough for the members, the server and 500 writes per second. The tests log a table with the requests and bytes
// of each member. Select a server by -run, such as -run Test/embedded/true, where true is the value of the feature gate.
package sharded_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/sharding"
)

var (
	objects = flag.Int("sharded.objects", 0, "the number of objects; 0: 1,000, or 400 with -short")
	rate    = flag.Int("sharded.rate", 100, "how many writes are sent per second")
	writes  = flag.Int("sharded.writes", 200, "during how many writes the bytes of members are counted")
	lease   = flag.Duration("sharded.lease", 6*time.Second, "the LeaseDuration of members")
)

// patience is how long each state may take to come.
const patience = 3 * time.Minute

// sayEach is how often the log says what a test waits for.
const sayEach = 15 * time.Second

// memberCount is the number of members. The objects are compared with those of one member alone.
const memberCount = 4

func TestMain(m *testing.M) {
	if os.Getenv(memberEnv) != "" {
		memberMain()
	}
	log.SetLogger(klog.Logger{})
	goleak.VerifyTestMain(m)
}

func TestMembers_ShareObjectsWhileTheyComeAndGo(t *testing.T) {
	switch {
	case *objects > 0:
	case testing.Short():
		*objects = 400
	default:
		*objects = 1000
	}
	for name, start := range map[string]func(t *testing.T, selects bool) *rest.Config{
		"embedded":       startEmbedded,
		"kube-apiserver": startKubeAPIServer,
	} {
		for _, selects := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", name, selects), func(t *testing.T) {
				if testing.Short() && name != "embedded" {
					t.Skip("-short: the embedded server stands for both; run without it")
				}
				t.Parallel()
				prove(t, start(t, selects), selects, name == "kube-apiserver")
			})
		}
	}
}

// prove runs one member alone, and then a group.
func prove(t *testing.T, cfg *rest.Config, selects, holders bool) {
	t.Helper()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server, err := newUpstream(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l := newLedger(*objects)
	begun := time.Now()
	if err := create(t.Context(), client, l, *objects); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d objects created in %v", *objects, time.Since(begun).Round(time.Second))
	checkSelector(t, client, l, selects)
	w := &writer{client: client, ledger: l, objects: *objects}

	single := &group{T: t, name: "single", ledger: l, server: server}
	alone := single.start("alone")
	single.awaitGroup("alone", 1)
	whole := single.measure(w)[0]
	alone.leave()
	l.forget()

	g := &group{T: t, name: "shared", ledger: l, server: server}
	for n := range memberCount {
		g.start(fmt.Sprintf("member-%d", n))
	}
	g.awaitGroup("at the start", memberCount)
	g.checkTable(cfg, holders)
	g.checkTraffic(whole, g.measure(w), selects)
	g.disturb(w)
	g.awaitCaches("at the end")
	for _, p := range g.running() {
		p.leave()
	}
	for _, text := range l.found() {
		t.Error(text)
	}
}

// await waits for a state.
func (g *group) await(what string, reached func() (bool, string)) {
	g.Helper()
	begun := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	said := begun
	for {
		is, why := reached()
		if is {
			g.Logf("%s: %s after %v", g.name, what, time.Since(begun).Round(100*time.Millisecond))
			return
		}
		if found := g.ledger.found(); len(found) > 0 {
			g.Fatalf("%s: %q", what, found)
		}
		if time.Since(begun) > patience {
			g.Fatalf("%s: not after %v: %s", what, patience, why)
		}
		if time.Since(said) > sayEach && why != "" {
			said = time.Now()
			g.Logf("%s: %s: not after %v: %s", g.name, what, said.Sub(begun).Round(time.Second), why)
		}
		<-tick.C
	}
}

// states asks all members that run.
func (g *group) states() (states []*state, text string) {
	g.Helper()
	for _, p := range g.running() {
		s := p.must("state").State
		states = append(states, s)
		text += fmt.Sprintf("; %s has %d slots and %d objects, waits for %d, sees %d members, reason %q, loaded %t", p.name, s.Slots, s.Objects, s.Pending, s.Members, s.Reason, s.Loaded)
	}
	return states, strings.TrimPrefix(text, "; ")
}

// awaitGroup waits until the members that run see each other and share all slots.
func (g *group) awaitGroup(when string, size int) {
	g.Helper()
	g.await(fmt.Sprintf("%s, %d members have all slots", when, size), func() (bool, string) {
		states, text := g.states()
		sum, settled := 0, len(states) == size
		for _, s := range states {
			sum += s.Slots
			settled = settled && s.Pending == 0 && s.Members == size-1 && s.Reason == sharding.ReasonNone && s.Loaded
		}
		return settled && sum == sharding.SlotCount, text
	})
}

// awaitHandled waits until the last version of each object has been handled.
func (g *group) awaitHandled(when string) {
	g.Helper()
	g.await(when+", the last state of each object is handled", func() (bool, string) {
		n, example := g.ledger.unhandled()
		return n == 0, fmt.Sprintf("%d objects are not, such as %s", n, example)
	})
}

// share is what one member has, and what it has received.
type share struct {
	name           string
	slots, objects int
	byClient       bool
	start, writes  traffic
}

// measure lets the members of a group begin to watch, then writes, and returns what each of them has received.
func (g *group) measure(w *writer) []share {
	g.Helper()
	members := g.running()
	shares := make([]share, len(members))
	var began []traffic
	for _, p := range members {
		began = append(began, p.proxy.traffic())
		p.must("start")
	}
	g.awaitGroup("at the first lists", len(members))
	g.awaitHandled("at the first lists")
	var listed []traffic
	for _, p := range members {
		listed = append(listed, p.proxy.traffic())
	}
	achieved, err := w.run(g.Context(), nil, *rate, *writes)
	if err != nil {
		g.Fatal(err)
	}
	g.Logf("%s: %.0f writes per second", g.name, achieved)
	g.awaitHandled("after the writes")
	g.awaitCaches("after the writes")
	for n, p := range members {
		s := p.must("state").State
		now := p.proxy.traffic()
		shares[n] = share{p.name, s.Slots, s.Objects, s.ByClient, listed[n].minus(began[n]), now.minus(listed[n])}
	}
	return shares
}

// checkTraffic compares what members have received with what one member alone has received.
func (g *group) checkTraffic(whole share, shares []share, selects bool) {
	g.Helper()
	text := fmt.Sprintf("%-12s %5s %8s %6s | %-14s %10s %6s | %10s %6s | %6s %9s", "member", "slots", "objects", "share", "first lists", "bytes", "share", "by writes", "share", "leases", "bytes")
	row := func(s share) {
		text += fmt.Sprintf("\n%-12s %5d %8d %5.1f%% | %2d + %d watches %10d %5.1f%% | %10d %5.1f%% | %6d %9d", s.name, s.slots, s.objects, percent(s.objects, *objects),
			s.start.lists, s.start.watches, s.start.bytes, percent(s.start.bytes, whole.start.bytes),
			s.writes.bytes, percent(s.writes.bytes, whole.writes.bytes), s.start.leases+s.writes.leases, s.start.leaseBytes+s.writes.leaseBytes)
	}
	row(whole)
	sum := share{name: "mean"}
	for _, s := range shares {
		row(s)
		sum.slots += s.slots
		sum.objects += s.objects
		sum.start.bytes += s.start.bytes
		sum.writes.bytes += s.writes.bytes
		if s.slots != sharding.SlotCount/memberCount {
			g.Errorf("%s has %d slots", s.name, s.slots)
		}
		// With few objects, a quarter of the hashes is not a quarter of the objects: allow four standard deviations more.
		if part := float64(s.objects*memberCount) / float64(*objects); math.Abs(part-1) > max(0.1, 4*math.Sqrt(memberCount-1)/math.Sqrt(float64(*objects))) {
			g.Errorf("%s has %.3f of a quarter of the objects", s.name, part)
		}
		if s.byClient == selects {
			g.Errorf("%s: the informer selects: %t, and the server: %t", s.name, s.byClient, selects)
		}
		part := percent(s.objects, *objects) / 100
		g.checkShare(s.name+", bytes of the first lists", s.start.bytes, whole.start.bytes, part, selects, 0.15)
		// Writes are of random objects: allow four standard deviations.
		g.checkShare(s.name+", bytes of events", s.writes.bytes, whole.writes.bytes, part, selects, max(0.15, 4*math.Sqrt(memberCount-1)/math.Sqrt(float64(*writes))))
	}
	n := len(shares)
	row(share{"mean", sum.slots / n, sum.objects / n, false, traffic{bytes: sum.start.bytes / n}, traffic{bytes: sum.writes.bytes / n}})
	g.Logf("%d objects, %d writes, %s=%t:\n%s", *objects, *writes, gate, selects, text)
	if sum.objects != *objects {
		g.Errorf("the members have %d objects, want %d", sum.objects, *objects)
	}
	g.checkShare("bytes of the first lists in the mean", sum.start.bytes/n, whole.start.bytes, 1.0/float64(n), selects, 0.15)
	g.checkShare("bytes of events in the mean", sum.writes.bytes/n, whole.writes.bytes, 1.0/float64(n), selects, 0.15)
}

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// checkShare checks that bytes of a member are its part of those of one member alone, within a tolerance; without the feature, all of them.
func (g *group) checkShare(what string, bytes, whole int, part float64, selects bool, tolerance float64) {
	g.Helper()
	if !selects {
		part = 1
	}
	if got := float64(bytes) / float64(whole); math.Abs(got/part-1) > tolerance {
		g.Errorf("%s: %.3f of those of one member, want %.3f", what, got, part)
	}
}

// disturb kills, stops and adds members while objects change.
func (g *group) disturb(w *writer) {
	g.Helper()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var achieved float64
	var failed error
	writing.Go(func() { achieved, failed = w.run(g.Context(), stop, *rate, 0) })
	end := sync.OnceFunc(func() { close(stop); writing.Wait() })
	defer end()

	members := g.running()
	killed, paused := members[0], members[1]
	killed.kill()
	g.awaitGroup("after SIGKILL", memberCount-1)

	// The member is stopped while it handles an object, and others wait for its handler.
	hold := g.ledger.hold(paused.name)
	g.await(paused.name+" handles an object", func() (bool, string) {
		select {
		case <-hold.reached:
			return true, ""
		default:
			return false, "no write has reached it"
		}
	})
	before := w.written.Load()
	g.await("objects have changed meanwhile", func() (bool, string) { return w.written.Load() > before+int64(*rate), "" })
	g.remove(paused)
	paused.pause()
	g.ledger.stopped(paused.name)
	close(hold.resume)
	handled := g.ledger.begun(paused.name)
	g.awaitGroup("after SIGSTOP", memberCount-2)
	if now := g.ledger.begun(paused.name); now != handled {
		g.Errorf("the stopped member has begun %d times to handle an object", now-handled)
	}
	paused.checkEach(1) // it has events of objects that others own
	g.add(paused)
	paused.signal(syscall.SIGCONT)
	g.awaitGroup("after SIGCONT", memberCount-1)
	g.await("the member that was stopped handles objects again", func() (bool, string) {
		return g.ledger.begun(paused.name) > handled, ""
	})

	g.start("member-new").must("start")
	g.awaitGroup("after one was added", memberCount)
	end()
	if failed != nil {
		g.Fatal(failed)
	}
	g.Logf("%s: %.0f writes per second while members came and went", g.name, achieved)
	g.awaitHandled("at the end")
}

// awaitCaches waits until each object that exists is in the cache of one member, in its last version, and no other object is in a cache. No
// object changes meanwhile.
func (g *group) awaitCaches(when string) {
	g.Helper()
	written := g.ledger.last()
	g.await(when+", the caches have the objects", func() (bool, string) {
		cached, wrong := 0, ""
		for _, p := range g.running() {
			for uid, version := range p.must("objects").Objects {
				if cached++; written[uid] != version {
					wrong = fmt.Sprintf("%s has %s in version %s, want %q", p.name, uid, version, written[uid])
				}
			}
		}
		if wrong == "" && cached != len(written) {
			wrong = fmt.Sprintf("%d objects, want %d", cached, len(written))
		}
		return wrong == "", wrong
	})
}
