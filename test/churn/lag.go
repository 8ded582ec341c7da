package churn

import (
	"slices"
	"sync"
	"time"
)

// ServerLag makes the second of [Config.Servers] learn of changes late. It belongs to the servers: all runs on them must share it, and the longest
// lag of their scripts applies. A run that settles ends only its own lag: the server may still have that of another run. So no check requires that the
// second server is up to date, and the model adds the lag to the times that it allows for a server. There is no lag while a script moves the types:
// a kube-apiserver with a lag would undo the move. It is safe for concurrent use.
type ServerLag struct {
	set func(time.Duration)

	mu   sync.Mutex
	runs map[*World]time.Duration // what they have asked for
	now  time.Duration            // the longest of them, or zero during a pause
	// paused is how many calls of pause have not been ended.
	paused int
	// applied is the time of the last call of set, and applying says that one has not returned.
	applied  time.Duration
	applying bool
}

// NewServerLag returns a ServerLag. Set delays everything that etcd sends to the second server, by the time of the last call. At first there is no delay, and
// zero ends it. What etcd has sent before a call must arrive within the new time. The calls of set are not concurrent.
func NewServerLag(set func(time.Duration)) *ServerLag {
	return &ServerLag{set: set, runs: map[*World]time.Duration{}}
}

// longestLag is the longest time that a script gets.
const longestLag = 2 * time.Second

// join begins a run: its world records how far the server is behind. Runs without a ServerLag have nil.
func (l *ServerLag) join(w *World) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[w] = 0
	w.recordLag(l.now, time.Now())
}

// leave ends what a run has asked for, and the run.
func (l *ServerLag) leave(w *World) {
	if l == nil {
		return
	}
	l.change(func() { delete(l.runs, w) })
}

// ask replaces what a run has asked for, which must have joined.
func (l *ServerLag) ask(w *World, d time.Duration) {
	if l == nil {
		return
	}
	l.change(func() { l.runs[w] = min(d, longestLag) })
}

// pause ends the lag of all runs until resume is called.
func (l *ServerLag) pause() (resume func()) {
	if l == nil {
		return func() {}
	}
	l.change(func() { l.paused++ })
	return func() { l.change(func() { l.paused-- }) }
}

// change changes what runs have asked for. The server then has the longest time of all, except for a moment if another change is in progress.
func (l *ServerLag) change(locked func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	locked()
	l.updateLocked()
	for !l.applying && l.applied != l.now {
		next := l.now
		l.applying = true
		l.mu.Unlock()
		l.set(next) // user code
		l.mu.Lock()
		l.applying, l.applied = false, next
	}
}

// updateLocked computes the longest time that a run has asked for. The caller holds l.mu.
func (l *ServerLag) updateLocked() {
	var longest time.Duration
	for _, d := range l.runs {
		if l.paused == 0 {
			longest = max(longest, d)
		}
	}
	if longest == l.now {
		return
	}
	l.now = longest
	for w := range l.runs {
		w.recordLag(longest, time.Now())
	}
}

// alternates records whether requests may go to the second server, from a time on. When that ends, the connections to it break.
func (w *World) alternates(does bool, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch last := len(w.second) - 1; {
	case last >= 0 && w.second[last].ended.IsZero():
		if !does {
			w.second[last].ended = at
		}
	case does:
		w.second = append(w.second, span{begun: at})
	}
}

// lagging is how far the second server is behind from a time on, until the next one.
type lagging struct {
	since time.Time
	by    time.Duration
}

// recordLag records that the second server is behind from a time on.
func (w *World) recordLag(by time.Duration, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lags = append(w.lags, lagging{since, by})
}

// behindLocked returns how far the server of the subject was behind between two times, at most: zero if no request went to the second server
// then, or shortly before. A server may still be behind for a moment when a lag has ended: a caller that needs this moment passes an earlier time.
// The caller holds w.mu.
func (w *World) behindLocked(from, to time.Time) time.Duration {
	var longest time.Duration
	if !slices.ContainsFunc(w.second, func(s span) bool { return s.meets(from.Add(-longestLag), to) }) {
		return 0
	}
	for i, l := range w.lags {
		ended := i+1 < len(w.lags) && w.lags[i+1].since.Before(from)
		if !ended && !l.since.After(to) {
			longest = max(longest, l.by)
		}
	}
	return longest
}

// lag makes the second server learn of changes late.
func (g *generator) lag() {
	g.add(Lag, nil, "ms", pick(g, "100", "500", "1000", "2000"))
}

// laggings are the scenarios with a server that is behind.
var laggings = []func(*generator){
	(*generator).resumedBehind,
	(*generator).definedBehind,
}

// behind lets requests alternate between the servers, of which the second one is behind.
func (g *generator) behind() {
	g.add(Alternate, nil, "period", "2")
	g.add(Settle, nil)
	g.lag()
}

// resumedBehind breaks watches while one server is behind: they may go on at a server that does not have the version yet at which they begin.
func (g *generator) resumedBehind() {
	s := g.scene("")
	s.watch("selector", "", "namespaces", pick(g, "", "a,b"))
	g.behind()
	for range 3 {
		s.do(Update, "a/x", "color", g.color())
		s.do(Replace, "a/y", "color", g.color())
		g.add(Pause, []string{pick(g, "20ms", "100ms")})
		g.add(Cut, []string{s.typ})
		s.do(Update, "b/x")
	}
	if g.IntN(2) == 0 {
		expired := g.faultName()
		g.add(Fault, []string{expired, s.typ}, "kind", pick(g, "gone", "gonestatus"), "times", "1") // a list follows
		g.add(Cut, []string{s.typ})
	}
	s.do(Delete, "b/y")
	s.do(Create, "a/z", "color", g.color())
	g.add(Pause, []string{pick(g, "100ms", "1s")})
	s.end()
}

// definedBehind changes the type while one server is behind: the other one knows the type, and it does not yet, or still has the one before.
func (g *generator) definedBehind() {
	s := g.scene("")
	s.watch()
	g.behind()
	g.add(Cut, []string{pick(g, everyDefinition, s.typ)})
	switch g.IntN(3) {
	case 0:
		g.add(Undefine, []string{s.typ})
		g.add(Pause, []string{pick(g, "20ms", "1s")})
		g.add(Define, []string{s.typ}, "scope", g.scope(), "versions", g.versions())
	case 1:
		g.add(Serve, []string{s.typ}, "versions", pick(g, "v1", "v1beta1"))
	default:
		g.add(Redefine, []string{s.typ}, "scope", g.scope(), "versions", g.versions())
	}
	s.do(Create, "a/x", "color", g.color())
	g.add(Cut, []string{everyDefinition})
	s.do(Create, "b/x", "color", g.color())
	s.do(Update, "a/x")
	g.add(Cut, []string{s.typ})
	g.add(Pause, []string{pick(g, "100ms", "1s")})
	other := s.lease + "b"
	g.acquire(other, s.typ)
	g.handle(other)
	s.do(Update, "b/x")
	if g.IntN(2) == 0 {
		g.add(Settle, nil)
	}
	g.add(Release, []string{other})
	s.end()
}
