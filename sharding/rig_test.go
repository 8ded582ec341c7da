package sharding

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// rig drives one machine by hand, on a server of its own.
type rig struct {
	*machine
	t        *testing.T
	now      time.Duration
	records  []*record
	revision int
	answers  int
}

var usual = timing{15 * time.Second, 10 * time.Second, 2 * time.Second, time.Second}

func newRig(t *testing.T, others ...*record) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Minute}
	for _, other := range others {
		r.store(other)
	}
	r.machine = newMachine(r.clock(), usual, "group-me", "me", "instance", rand.New(rand.NewPCG(1, 1)))
	return r
}

// seatIn has the seats of the members in tests of one machine.
var seatIn = map[string]int{"me": 1, "a": 2, "zombie": 2, "first": 3, "b": 3}

// other returns the Lease of another member.
func other(identity string, claims Slots) *record {
	return &record{name: "group-" + identity, identity: identity, instance: "other", claims: claims, seat: seatIn[identity], term: usual.lease}
}

func (r *rig) clock() instant { return instant{r.now, r.now} }

// store writes a Lease, also one that is equal to the stored one.
func (r *rig) store(of *record) {
	r.revision++
	stored := *of
	stored.version = time.Duration(r.revision).String()
	r.drop(of.name)
	r.records = append(r.records, &stored)
	slices.SortFunc(r.records, compareNames)
}

func (r *rig) drop(name string) {
	r.records = slices.DeleteFunc(slices.Clone(r.records), func(other *record) bool { return other.name == name })
}

func (r *rig) stored(name string) *record {
	for _, of := range r.records {
		if of.name == name {
			return of
		}
	}
	return nil
}

// next fails the test if the machine neither sends a request nor waits: the goroutine of a member would use a whole CPU.
func (r *rig) next(now instant) (request, time.Duration) {
	r.t.Helper()
	sent, wait := r.machine.next(now)
	if sent.verb == 0 && wait <= 0 && !r.left {
		r.t.Fatalf("at %v, the machine neither sends a request nor waits", now)
	}
	return sent, wait
}

// sends lets time pass until the machine sends a request, which must be of this kind.
func (r *rig) sends(want verb) request {
	r.t.Helper()
	for range 100 {
		sent, wait := r.next(r.clock())
		if sent.verb != 0 {
			if sent.verb != want {
				r.t.Fatalf("at %v, the request is %d, want %d: %+v", r.now, sent.verb, want, sent)
			}
			return sent
		}
		r.now += wait
	}
	r.t.Fatal("no request")
	return request{}
}

// execute executes a write on the server.
func (r *rig) execute(w request) {
	w.record.uid = "uid"
	r.store(&w.record)
}

// answer gives the machine the response of its request, after a time.
func (r *rig) answer(after time.Duration) {
	r.t.Helper()
	r.count()
	switch r.now += after; r.inFlight {
	case list:
		r.listed(r.clock(), r.records)
	case remove, release:
		r.succeeded(r.clock(), "", "")
	default:
		r.execute(request{record: r.written})
		r.succeeded(r.clock(), r.stored(r.name).version, "uid")
	}
}

// refuse lets the request of the machine fail. The server may have executed it.
func (r *rig) refuse() {
	r.t.Helper()
	r.count()
	r.failed(r.clock(), unknown, errors.New("refused"))
}

// count ends a test whose machine sends requests without end.
func (r *rig) count() {
	r.t.Helper()
	if r.answers++; r.answers > 1000 {
		r.t.Fatalf("at %v, more than 1000 requests", r.now)
	}
}

// cycle renews the Lease and lists all.
func (r *rig) cycle() {
	r.t.Helper()
	if r.acked == 0 {
		r.sends(list)
		r.answer(0)
		r.sends(create)
	} else {
		r.sends(update)
	}
	r.answer(0)
	r.sends(list)
	r.answer(0)
}

func (r *rig) owns(want Slots) {
	r.t.Helper()
	for slot := range SlotCount {
		if got := r.grant.owns(slot, r.clock()); got != want.Has(slot) {
			r.t.Fatalf("at %v, owns slot %d: %v, want %v", r.now, slot, got, want.Has(slot))
		}
	}
}

// shares returns what me has in a group with another member, and the rest.
func shares(other string) (mine, rest Slots) {
	mine = slotsOf(seatIn["me"], []int{seatIn[other]})
	return mine, mine.Complement()
}

// predecessor is a Lease of the own name that another process wrote.
func predecessor() *record {
	before := other("me", allSlots())
	before.instance, before.write = "killed", 7
	return before
}

// atOnce expects these requests, at once.
func (r *rig) atOnce(want ...verb) {
	r.t.Helper()
	for _, v := range want {
		at := r.now
		r.sends(v)
		if r.now != at {
			r.t.Errorf("request %d after %v", v, r.now-at)
		}
		r.answer(0)
	}
}
