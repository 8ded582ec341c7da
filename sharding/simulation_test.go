package sharding

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	simulatedHours = flag.Float64("sharding.hours", 0, "hours of members to simulate; 0: 100, or 20 with -short")
	simulationSeed = flag.Uint64("sharding.seed", 0, "seed of the first simulation; 0: a random one")
)

// simulation runs the machines of a group on an API server in memory, by events in true time.
type simulation struct {
	seed      uint64
	random    *rand.Rand
	timing    timing
	now       time.Duration
	events    eventHeap
	handled   []*event // to be used again
	sequence  uint64
	processes []*process
	names     int

	settled  time.Duration // when the last request in flight arrives or times out, and the last follower lets go
	revision int
	leases   []*record // in the order of their names; replaced, never changed
	faults
	log      []string
	hours    float64 // of members
	problem  error
	verbose  bool // log also requests
	shared   bool // two processes may have one identity: one of them ends
	requests int
}

// faults are the faults of the whole group.
type faults struct {
	down      bool          // the API server does not respond
	errorRate float64       // of responses; half of these requests are executed
	lossRate  float64       // of requests and responses
	slowRate  float64       // of requests and responses that take up to a term and more
	latency   time.Duration // of the others, at most
	drain     time.Duration // of followers, at most
}

// process is a member on a machine with clocks of its own.
type process struct {
	*machine
	identity    string
	rate        float64       // of its clocks
	offset      instant       // of its clocks, also what they have lost or gained
	began       time.Duration // for hours
	crashed     bool
	pausedUntil time.Duration
	clockFault  time.Duration // the last one: a set wall clock hides that the machine was suspended
	partitioned bool
	wake        uint64 // the number of the valid event that wakes it
	call        uint64 // the number of the request in flight
	drained     uint64
	saw         grant // when it was checked last
	protected   Slots // its followers may still act on them
}

type kind int

const (
	wakes kind = iota
	arrives
	responds
	drains
)

type event struct {
	at       time.Duration
	tie      uint64
	kind     kind
	p        *process
	number   uint64 // of the wake or the request, or the generation
	request  request
	timeout  time.Duration // when the process gives the request up
	records  []*record
	stored   *record
	how      failure
	err      error
	response bool // the request has succeeded
	lost     bool // it has timed out
}

// eventHeap has the events that are to come, the next one first.
type eventHeap []*event

func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.tie < b.tie }

func (h *eventHeap) push(e *event) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(s[parent]) {
			break
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *eventHeap) pop() *event {
	s := *h
	e := s[0]
	last := len(s) - 1
	s[0], s[last] = s[last], nil
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return e
		}
		if child+1 < last && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(s[i]) {
			return e
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}

func newSimulation(seed uint64) *simulation {
	s := &simulation{seed: seed, random: rand.New(rand.NewPCG(seed, 19)), timing: timing{15 * time.Second, 10 * time.Second, 2 * time.Second, time.Second}}
	if s.chance(0.3) { // other durations, often at the limits
		s.timing.lease = time.Duration(1+s.random.IntN(60)) * time.Second
		s.timing.skew = time.Duration(s.random.Int64N(int64(s.timing.lease / 4)))
		s.timing.renew = s.timing.lease - s.timing.skew - time.Duration(s.random.IntN(2))*s.timing.lease/4
		s.timing.retry = s.timing.renew / time.Duration(2+s.random.IntN(6))
	}
	return s
}

func (s *simulation) chance(p float64) bool { return s.random.Float64() < p }

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d) + 1))
}

func (s *simulation) note(format string, args ...any) {
	if len(s.log) > 4000 {
		s.log = slices.Clone(s.log[2000:])
	}
	s.log = append(s.log, fmt.Sprintf("%12v ", s.now)+fmt.Sprintf(format, args...))
}

func (s *simulation) push(of event) { //nolint:gocritic // a copy that is kept
	if of.kind == arrives || of.kind == drains || of.lost {
		s.settled = max(s.settled, of.at)
	}
	of.tie = s.random.Uint64()
	e := new(event)
	if last := len(s.handled) - 1; last >= 0 {
		e, s.handled = s.handled[last], s.handled[:last]
	}
	*e = of
	s.events.push(e)
}

// reads returns what the clocks of p show.
func (p *process) reads(now time.Duration) instant {
	elapsed := time.Duration(float64(now) * p.rate)
	return p.offset.add(elapsed)
}

func (s *simulation) join() {
	identity := "member-" + strconv.Itoa(s.names)
	s.names++
	s.joinAs(identity)
}

func (s *simulation) joinAs(identity string) {
	p := &process{identity: identity, began: s.now}
	// Two clocks differ by at most skew in one LeaseDuration.
	widest := float64(s.timing.skew) / float64(s.timing.lease)
	switch s.random.IntN(3) {
	case 0:
		p.rate = 1
	case 1:
		p.rate = 1 + widest
	default:
		p.rate = 1 + widest*s.random.Float64()
	}
	p.offset = instant{s.upTo(time.Hour), s.upTo(time.Hour)}
	t := s.timing
	p.machine = newMachine(p.reads(s.now), t, leaseName("group", identity), identity, strconv.FormatUint(s.random.Uint64(), 36), s.random)
	p.drained, p.saw = 1, p.grant
	s.processes = append(s.processes, p)
	s.note("%s joins, rate %v", identity, p.rate)
	s.kick(p)
}

// kick lets a process act, and checks what it then owns.
func (s *simulation) kick(p *process) {
	if p.left { // the last response has ended it
		s.gone(p)
		return
	}
	r, wait := p.next(p.reads(s.now))
	s.changed(p)
	if r.verb != 0 {
		s.send(p, r)
	} else if wait <= 0 && !p.left && s.problem == nil {
		s.problem = fmt.Errorf("at %v, %s neither sends a request nor waits", s.now, p.identity)
	}
	if p.left {
		s.gone(p)
		return
	}
	s.sequence++
	p.wake = s.sequence
	s.push(event{at: max(s.now+time.Duration(float64(wait)/p.rate)+1, p.pausedUntil), kind: wakes, p: p, number: p.wake})
}

func (s *simulation) gone(p *process) {
	s.note("%s has ended", p.identity)
	s.hours += (s.now - p.began).Hours()
	s.processes = slices.DeleteFunc(s.processes, func(other *process) bool { return other == p })
}

// changed checks, after a change of what p owns, that no other process owns a part of it, and that the followers of
// no other process may act on a part of it. Followers that let go later than the end of the term are not protected.
func (s *simulation) changed(p *process) {
	now, saw := p.reads(s.now), p.saw
	p.saw = p.grant
	if saw == p.saw && p.protected.Empty() {
		return
	}
	if saw.until.reached(now) {
		p.protected = Slots{}
	} else {
		p.protected = p.protected.Union(saw.slots).Intersect(p.draining)
	}
	if p.saw.generation != saw.generation {
		s.push(event{at: max(p.pausedUntil, s.now+s.upTo(s.drain)), kind: drains, p: p, number: p.saw.generation})
	}
	if p.saw.until.reached(now) || p.saw.slots.Minus(saw.slots).Empty() && !saw.until.reached(now) { // it owns nothing that it did not own
		return
	}
	for _, other := range s.processes {
		if other == p || other.grant.until.reached(other.reads(s.now)) {
			continue
		}
		acts := other.grant.slots.Union(other.protected.Intersect(other.draining))
		if twice := p.saw.slots.Intersect(acts); !twice.Empty() && s.problem == nil {
			s.problem = fmt.Errorf("at %v, %s owns slots of %s: %v", s.now, p.identity, other.identity, twice)
		}
	}
}

func (s *simulation) delay() time.Duration {
	if s.slowRate > 0 && s.chance(s.slowRate) {
		return s.upTo(2 * s.timing.lease)
	}
	return s.upTo(s.latency)
}

func (s *simulation) send(p *process, r request) {
	if s.verbose {
		s.note("%s sends %+v", p.identity, r)
	}
	s.requests++
	s.sequence++
	p.call = s.sequence
	timeout := s.now + time.Duration(float64(r.timeout)/p.rate)
	lost := p.partitioned || s.lossRate > 0 && s.chance(s.lossRate)
	arrival := s.now + s.delay()
	if !lost {
		s.push(event{at: arrival, kind: arrives, p: p, number: p.call, request: r, timeout: timeout})
	}
	if lost || arrival >= timeout {
		s.timeOut(p, p.call, timeout)
	}
}

// timeOut ends a request of p without a response.
func (s *simulation) timeOut(p *process, call uint64, at time.Duration) {
	s.push(event{at: max(at, p.pausedUntil), kind: responds, p: p, number: call, how: unknown, err: errLost, lost: true})
}

// arrive executes a request at the API server.
func (s *simulation) arrive(e *event) {
	p := e.p
	answer := event{kind: responds, p: p, number: e.number}
	if s.down || p.partitioned {
		s.timeOut(p, e.number, e.timeout)
		return
	}
	failing := s.errorRate > 0 && s.chance(s.errorRate)
	if !failing || s.chance(0.5) {
		s.execute(e.request, &answer)
	}
	if failing {
		answer.response, answer.how, answer.err = false, unknown, errServer
	}
	arrival := s.now + s.delay()
	if arrival >= e.timeout || s.lossRate > 0 && s.chance(s.lossRate) {
		s.timeOut(p, e.number, e.timeout)
		return
	}
	answer.at = max(arrival, p.pausedUntil) // also after the timeout: a process that was paused may read the response first
	s.push(answer)
}

type simulatedError string

func (e simulatedError) Error() string { return string(e) }

const (
	errLost   simulatedError = "lost"
	errServer simulatedError = "server error"
	errExists simulatedError = "conflict"
)

// execute is the API server: optimistic concurrency, and consistent lists.
func (s *simulation) execute(r request, answer *event) {
	if r.verb == list {
		answer.records, answer.response = s.leases, true
		return
	}
	at, exists := slices.BinarySearchFunc(s.leases, &r.record, compareNames)
	if exists == (r.verb == create) || exists && s.leases[at].version != r.record.version {
		if r.verb == remove && !exists {
			answer.response = true
			return
		}
		answer.how, answer.err = conflict, errExists
		return
	}
	answer.response = true
	s.revision++
	stored := r.record
	stored.version = strconv.Itoa(s.revision)
	if r.verb == create {
		stored.uid = stored.version
	}
	answer.stored = &stored
	switch changed := slices.Clone(s.leases); r.verb {
	case create:
		s.leases = slices.Insert(changed, at, &stored)
	case update, release:
		changed[at] = &stored
		s.leases = changed
	case remove:
		s.leases = slices.Delete(changed, at, at+1)
	}
}

// handle handles one event.
func (s *simulation) handle(e *event) {
	p := e.p
	if e.kind == arrives {
		s.arrive(e)
		return
	}
	if p.crashed || p.left {
		return
	}
	if s.now < p.pausedUntil {
		later := *e
		later.at = p.pausedUntil
		s.push(later)
		return
	}
	switch e.kind {
	case wakes:
		if e.number != p.wake {
			return
		}
	case drains:
		p.drained = max(p.drained, e.number)
		p.letGo(p.drained)
	case responds:
		if s.verbose {
			s.note("%s gets %+v %v", p.identity, e.stored, e.err)
		}
		if e.number != p.call || p.inFlight == 0 {
			return
		}
		p.call = 0
		now := p.reads(s.now)
		switch {
		case !e.response:
			p.failed(now, e.how, e.err)
		case p.inFlight == list:
			p.listed(now, e.records)
		case p.inFlight == remove || p.inFlight == release:
			p.succeeded(now, "", "")
		default:
			p.succeeded(now, e.stored.version, e.stored.uid)
		}
		if s.verbose {
			s.note("%s has %v until %v, now %v, pending %v", p.identity, p.grant.slots, p.grant.until, now, p.pending)
		}
		s.changed(p)
		if p.inUse && !s.shared && s.problem == nil {
			s.problem = fmt.Errorf("at %v, the identity of %s is in use", s.now, p.identity)
		}
	}
	s.kick(p)
}

// runFor handles the events of a time.
func (s *simulation) runFor(d time.Duration) {
	end := s.now + d
	for len(s.events) > 0 && s.events[0].at <= end && s.problem == nil {
		e := s.events.pop()
		s.now = max(s.now, e.at)
		s.handle(e)
		s.handled = append(s.handled, e)
	}
	s.now = end
}

// others counts the processes other than p that do not leave.
func (s *simulation) others(p *process) (n int) {
	for _, other := range s.processes {
		if other != p && !other.leaving {
			n++
		}
	}
	return n
}

// any returns a random process.
func (s *simulation) any() *process { return s.processes[s.random.IntN(len(s.processes))] }

// fault begins, or ends, a random fault.
func (s *simulation) fault(most int) {
	switch s.random.IntN(15) {
	case 0, 1:
		if len(s.processes) < most {
			s.join()
		}
	case 2:
		if p := s.any(); s.others(p) > 0 {
			s.note("%s crashes", p.identity)
			p.crashed = true
			s.gone(p)
			if s.chance(0.3) {
				s.joinAs(p.identity)
			}
		}
	case 3:
		if p := s.any(); s.others(p) > 0 && s.now >= p.pausedUntil {
			s.note("%s leaves", p.identity)
			p.leave()
			s.changed(p)
			s.kick(p)
		}
	case 4, 5:
		p := s.any()
		p.pausedUntil = max(p.pausedUntil, s.now+s.upTo(3*s.timing.lease))
		s.note("%s pauses until %v", p.identity, p.pausedUntil)
	case 6: // the machine is suspended: its monotonic clock does not advance
		p := s.any()
		if s.now < p.pausedUntil || s.now < p.clockFault+s.timing.lease {
			return
		}
		d := s.upTo(3 * s.timing.lease)
		p.pausedUntil = s.now + d
		p.clockFault = p.pausedUntil
		p.offset.mono -= time.Duration(float64(d) * p.rate)
		s.note("%s is suspended until %v", p.identity, p.pausedUntil)
	case 7:
		p := s.any()
		if s.now < p.clockFault+s.timing.lease {
			return
		}
		p.clockFault = s.now
		p.offset.wall += s.upTo(4*s.timing.lease) - 2*s.timing.lease
		s.note("the wall clock of %s is set to %v", p.identity, p.reads(s.now).wall)
	case 8, 9:
		p := s.any()
		p.partitioned = !p.partitioned
		s.note("%s partitioned: %v", p.identity, p.partitioned)
	case 10:
		s.down = !s.down && s.chance(0.5)
		s.note("down: %v", s.down)
	case 11:
		s.errorRate = s.random.Float64() * 0.5
	case 12:
		s.lossRate = s.random.Float64() * 0.3
	case 13:
		s.slowRate = s.random.Float64() * 0.3
	case 14:
		s.changeSeat(s.any())
	}
}

// changeSeat changes the seat in the Lease of p, as another program may do.
func (s *simulation) changeSeat(p *process) {
	s.edit(p, func(of *record) {
		of.seat = []int{noSeat, -1, 1_000_000_000, 1, 2, s.leases[s.random.IntN(len(s.leases))].seat}[s.random.IntN(6)]
		s.note("the Lease of %s says seat %d", p.identity, of.seat)
	})
}

// removeWrite makes the Lease of p that of no process.
func (s *simulation) removeWrite(p *process) {
	s.edit(p, func(of *record) {
		of.instance, of.write = "", 0
		s.note("the Lease of %s is of no process", p.identity)
	})
}

// edit changes the Lease of p, if it is the last process that wrote it.
func (s *simulation) edit(p *process, change func(*record)) {
	at := slices.IndexFunc(s.leases, func(of *record) bool { return of.instance == p.instance })
	if at < 0 {
		return
	}
	s.revision++
	changed := *s.leases[at]
	changed.version = strconv.Itoa(s.revision)
	change(&changed)
	s.leases = slices.Clone(s.leases)
	s.leases[at] = &changed
}

// calm ends all faults. Pauses, late requests and followers that let go late are the last ones.
func (s *simulation) calm() {
	s.faults = faults{latency: 50 * time.Millisecond, drain: 100 * time.Millisecond}
	last := max(s.now, s.settled)
	for _, p := range s.processes {
		p.partitioned = false
		last = max(last, p.pausedUntil)
	}
	s.note("calm from %v", last)
	s.runFor(last - s.now)
}

// term is the longest time until each slot is owned after the last fault: a member that was killed just after it
// renewed its Lease is seen by the next list, and the first list after LeaseDuration and ClockSkew shows that it has expired.
// Slots that it would have had to let go are let go in the next list.
func (s *simulation) term() time.Duration {
	return s.timing.lease + s.timing.skew + 2*s.timing.retry + time.Second
}

// owned returns the slots that any process owns.
func (s *simulation) owned() (all Slots) {
	for _, p := range s.processes {
		if !p.grant.until.reached(p.reads(s.now)) {
			all = all.Union(p.grant.slots)
		}
	}
	return all
}

// checkSeats checks, at rest, that each process has a seat of its own and its slots.
func (s *simulation) checkSeats() {
	seats := make([]int, 0, len(s.processes))
	for _, p := range s.processes {
		if slices.Contains(seats, p.seat) && s.problem == nil {
			s.problem = fmt.Errorf("at %v, %s and another process have seat %d", s.now, p.identity, p.seat)
		}
		seats = append(seats, p.seat)
	}
	for i, p := range s.processes {
		others := slices.Concat(seats[:i], seats[i+1:])
		if want := slotsOf(p.seat, others); p.grant.slots != want && s.problem == nil {
			s.problem = fmt.Errorf("at %v, %s with seat %d beside %v has %v, want %v", s.now, p.identity, p.seat, others, p.grant.slots, want)
		}
	}
}

// run simulates faults and calm times, and returns the first violation.
func (s *simulation) run(most int, rounds int) error {
	s.calm()
	for range 1 + s.random.IntN(most) {
		s.join()
	}
	for range rounds {
		s.latency = s.upTo(s.timing.retry)
		s.drain = s.upTo(s.timing.lease)
		for range s.random.IntN(60) {
			s.fault(most)
			s.runFor(s.upTo(s.timing.lease))
		}
		s.calm()
		s.runFor(s.term())
		if missing := allSlots().Minus(s.owned()); !missing.Empty() && s.problem == nil {
			s.problem = fmt.Errorf("at %v, nothing owns %v", s.now, missing)
		}
		for range 4 {
			s.runFor(s.upTo(10 * s.timing.lease))
			if missing := allSlots().Minus(s.owned()); !missing.Empty() && s.problem == nil {
				s.problem = fmt.Errorf("at %v, nothing owns %v", s.now, missing)
			}
		}
		s.checkSeats()
		if s.problem != nil {
			return s.problem
		}
	}
	for _, p := range s.processes {
		s.hours += (s.now - p.began).Hours()
	}
	return nil
}

// Groups of 1 to 100 members with random faults; the hours are those of all members together. Run it for long after a change of the machine:
//
//	go test ./sharding -run TestMachine_NeverTwoOwners -v -timeout=0 -sharding.hours=100000
//
// With -race, it takes ten times as long, and finds nothing else: it has one goroutine.
func TestMachine_NeverTwoOwnersAndNoSlotWithoutOwnerAfterATerm(t *testing.T) {
	seed := *simulationSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	enough := *simulatedHours
	switch {
	case enough > 0:
	case testing.Short():
		enough = 20
	default:
		enough = 100
	}
	begun, hours, requests := time.Now(), 0.0, 0
	for ; hours < enough; seed++ {
		s := newSimulation(seed)
		most := []int{2, 3, 5, 10, 30, 100}[s.random.IntN(6)]
		if err := s.run(most, 3); err != nil {
			for _, line := range s.log {
				t.Log(line)
			}
			t.Fatalf("-sharding.seed=%d, %d members, %+v: %v", seed, most, s.timing, err)
		}
		hours += s.hours
		requests += s.requests
	}
	took := time.Since(begun)
	t.Logf("%.0f hours of members in %v, %.0f hours per second, %d requests", hours, took, hours/took.Seconds(), requests)
}

// Members that stay keep their seats while others join, leave, are killed, pause or restart: so no slot moves from one member that stays to
// another.
func TestMachine_MembersThatStayKeepTheirSeats(t *testing.T) {
	seed := *simulationSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	for range 20 {
		seed++
		s := &simulation{seed: seed, random: rand.New(rand.NewPCG(seed, 19)), timing: usual}
		s.faults = faults{latency: 50 * time.Millisecond, drain: 100 * time.Millisecond}
		for range 3 {
			s.join()
		}
		s.runFor(s.term())
		var ended []string
		for range 30 {
			seats := map[string]int{}
			for _, p := range s.processes {
				seats[p.instance] = p.seat
			}
			rest := s.now
			for range 1 + s.random.IntN(3) {
				p := s.any()
				switch at := s.random.IntN(len(ended) + 1); s.random.IntN(5) {
				case 0:
					s.join()
				case 1:
					if at < len(ended) {
						s.joinAs(ended[at])
						ended = slices.Delete(ended, at, at+1)
					}
				case 2:
					if s.others(p) > 0 {
						ended = append(ended, p.identity)
						p.crashed = true
						s.gone(p)
					}
				case 3:
					p.pausedUntil = s.now + s.upTo(3*s.timing.lease)
					rest = max(rest, p.pausedUntil)
					delete(seats, p.instance)
				case 4:
					if s.others(p) > 0 && s.now >= p.pausedUntil {
						ended = append(ended, p.identity)
						p.leave()
						s.changed(p)
						s.kick(p)
						s.runFor(time.Second) // until it has ended
					}
				}
			}
			s.runFor(max(0, rest-s.now) + 2*s.term())
			for _, p := range s.processes {
				if before, stays := seats[p.instance]; stays && p.seat != before {
					t.Fatalf("-sharding.seed=%d: at %v, %s has seat %d, and had %d:\n%s", seed-1, s.now, p.identity, p.seat, before, strings.Join(s.log, "\n"))
				}
			}
			if s.checkSeats(); s.problem != nil {
				t.Fatalf("-sharding.seed=%d: %v:\n%s", seed-1, s.problem, strings.Join(s.log, "\n"))
			}
		}
	}
}
