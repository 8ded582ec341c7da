package sharding

import (
	"slices"
	"testing"
	"time"
)

func TestMachine_FirstMemberDeletesGarbage(t *testing.T) {
	const term = 16 * time.Second
	for _, first := range []bool{true, false} {
		_, rest := shares("zombie")
		r := newRig(t, other("zombie", rest))
		begun := r.now
		var got []verb
		for r.now < begun+8*term {
			if !first {
				r.store(other("first", Slots{}))
			}
			sent, wait := r.next(r.clock())
			switch sent.verb {
			case 0:
				r.now += wait
				continue
			case release, remove:
				stored, age := r.stored("group-zombie"), r.now-begun
				got = append(got, sent.verb)
				after := []time.Duration{1: term, 2: 5 * term}[len(got)]
				if sent.record.version != stored.version || age < after || age > after+2*usual.retry {
					t.Fatalf("after %v, request %d of version %s: %+v", age, sent.verb, stored.version, sent.record)
				}
				if r.drop("group-zombie"); sent.verb == release {
					r.store(&sent.record)
				}
			}
			r.answer(0)
		}
		if want := []verb{release, remove}; first && !slices.Equal(got, want) || !first && len(got) > 0 {
			t.Errorf("first: %v, requests %v", first, got)
		}
	}
}

// A released Lease claims nothing, also if it is deleted before a member has seen that it is not renewed.
func TestMachine_ReleasesGarbageWithoutClaims(t *testing.T) {
	_, rest := shares("zombie")
	r := newRig(t, other("zombie", rest))
	for {
		sent, wait := r.next(r.clock())
		switch sent.verb {
		case 0:
			r.now += wait
			continue
		case release:
			if sent.record.identity != "" || !sent.record.claims.Empty() || sent.record.instance != "other" {
				t.Errorf("writes %+v", sent.record)
			}
			return
		}
		r.answer(0)
	}
}

// The server keeps a Lease with a finalizer, also if it has accepted its deletion.
func TestMachine_GarbageThatStaysIsTriedRarely(t *testing.T) {
	r := newRig(t, other("x", Slots{}), other("y", Slots{}), other("z", Slots{}))
	begun, tried := r.now, map[string]int{}
	for r.now < begun+10*time.Minute {
		sent, wait := r.next(r.clock())
		switch sent.verb {
		case 0:
			r.now += wait
			continue
		case release, remove:
			if tried[sent.record.name]++; tried[sent.record.name] > 200 {
				t.Fatalf("after %v: %v", r.now-begun, tried)
			}
		}
		r.answers = 0 // their number is checked here
		r.answer(0)
	}
	for _, name := range []string{"group-x", "group-y", "group-z"} {
		if tried[name] < 20 {
			t.Errorf("%s was tried %d times: %v", name, tried[name], tried)
		}
	}
}
