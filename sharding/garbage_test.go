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
