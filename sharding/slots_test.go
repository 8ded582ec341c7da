package sharding

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apisharding "k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

func randomSlots(random *rand.Rand) (s Slots) {
	share := random.Float64()
	for slot := range SlotCount {
		if random.Float64() < share {
			s.add(slot)
		}
	}
	return s
}

// parseSelector reads the ranges of a selector, as the API server does.
func parseSelector(t *testing.T, text string) apisharding.Selector {
	t.Helper()
	var ranges []apisharding.ShardRangeRequirement
	for rest := text; rest != ""; {
		var r apisharding.ShardRangeRequirement
		if ranges != nil {
			rest = rest[len(" || "):]
		}
		if _, err := fmt.Sscanf(rest, "shardRange(object.metadata.uid, '%18s", &r.Start); err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		rest = rest[len("shardRange(object.metadata.uid, '0x0000000000000000', '"):]
		r.End = rest[:18]
		if rest[18] == '0' {
			r.End = rest[:19]
		}
		rest = rest[len(r.End)+len("')"):]
		r.Key = field
		if !apisharding.HexLess(r.Start, r.End) {
			t.Fatalf("the range from %s to %s is empty", r.Start, r.End)
		}
		ranges = append(ranges, r)
	}
	return apisharding.NewSelector(ranges...)
}

func TestSlots_SelectorSelectsTheObjectsOfTheSlots(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sets := []Slots{{}, allSlots()}
	for _, slot := range []int{0, 1, 63, 64, 255} {
		var one Slots
		one.add(slot)
		sets = append(sets, one, allSlots().Minus(one))
	}
	for range 30 {
		sets = append(sets, randomSlots(random))
	}
	for _, slots := range sets {
		selector := parseSelector(t, slots.Selector())
		for range 1000 {
			uid := types.UID(uuid.NewString())
			got, err := selector.Matches(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}})
			if err != nil {
				t.Fatal(err)
			}
			if want := slots.Has(SlotOf(uid)); got != want {
				t.Fatalf("%s: the selector selects %s in slot %d: %v, want %v", slots, uid, SlotOf(uid), got, want)
			}
		}
	}
}

func TestSlots_Selector(t *testing.T) {
	var s Slots
	for _, slot := range []int{0, 1, 16, 255} {
		s.add(slot)
	}
	const want = "shardRange(object.metadata.uid, '0x0000000000000000', '0x0200000000000000') || " +
		"shardRange(object.metadata.uid, '0x1000000000000000', '0x1100000000000000') || " +
		"shardRange(object.metadata.uid, '0xff00000000000000', '0x10000000000000000')"
	if got := s.Selector(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := allSlots().Selector(); got != "" {
		t.Errorf("all slots: %s, want none", got)
	}
	if got := (Slots{}).Selector(); got != "shardRange(object.metadata.uid, '0xffffffffffffffff', '0x10000000000000000')" {
		t.Errorf("no slots: %s, which must not be empty", got)
	}
}

func TestSlots_AreASet(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		a, b := randomSlots(random), randomSlots(random)
		var all Slots
		n := 0
		for slot := range a.All() {
			all.add(slot)
			n++
		}
		if all != a || n != a.Len() || a.Empty() != (n == 0) {
			t.Fatalf("%v: iterates over %v, %d slots of %d", a, all, n, a.Len())
		}
		for slot := -1; slot <= SlotCount; slot++ {
			inA, inB := a.Has(slot), b.Has(slot)
			if a.Union(b).Has(slot) != (inA || inB) || a.Intersect(b).Has(slot) != (inA && inB) || a.Minus(b).Has(slot) != (inA && !inB) {
				t.Fatalf("slot %d in %v and %v", slot, a, b)
			}
		}
		if parsed, ok := parseSlots(a.String()); !ok || parsed != a {
			t.Fatalf("%v is parsed as %v", a, parsed)
		}
	}
}

func TestParseSlots_RefusesOtherText(t *testing.T) {
	for _, text := range []string{"x", ",", "1,", "256", "-1", "3-2", "1-", "1-2-3", "0x1", " 1"} {
		if s, ok := parseSlots(text); ok {
			t.Errorf("%q is %v", text, s)
		}
	}
}

func TestRecord_OfALeaseThatCantBeReadClaimsAll(t *testing.T) {
	for text, want := range map[string]Slots{"": {}, "0-255": allSlots(), "1,x": allSlots()} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{SlotsAnnotation: text}}}
		if got := newRecord(l).claims; got != want {
			t.Errorf("%q: claims %v, want %v", text, got, want)
		}
	}
}

func TestRecord_HasTheSeatOfTheLease(t *testing.T) {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{SeatAnnotation: "7th"}}}
	for _, seat := range []int{noSeat, 3, noSeat} {
		if got := newRecord(l).seat; got != seat {
			t.Errorf("seat %d, want %d: %v", got, seat, l.Annotations)
		}
		next := map[int]int{noSeat: 3, 3: noSeat}[seat]
		(&record{seat: next}).writeTo(l, "group", time.Now())
	}
}

// The API server refuses a duration of zero.
func TestRecord_OfALeaseWithoutADurationWritesNone(t *testing.T) {
	for _, duration := range []*int32{nil, new(int32(15))} {
		l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: duration}}
		newRecord(l).writeTo(l, "group", time.Now())
		if got := l.Spec.LeaseDurationSeconds; (got == nil) != (duration == nil) || got != nil && *got != *duration {
			t.Errorf("got %v, want %v", got, duration)
		}
	}
}

func FuzzParseSlots(f *testing.F) {
	f.Add("0-255")
	f.Add("1,3,5-9")
	f.Fuzz(func(t *testing.T, text string) {
		if s, ok := parseSlots(text); ok {
			if again, ok := parseSlots(s.String()); !ok || again != s {
				t.Errorf("%q: %v is parsed as %v", text, s, again)
			}
		}
	})
}

func TestStatic_SharesAllSlotsEvenly(t *testing.T) {
	for count := 1; count <= SlotCount; count++ {
		var all Slots
		for index := range count {
			shard, err := Static(index, count)
			if err != nil {
				t.Fatal(err)
			}
			slots := shard.View().Slots
			if n := slots.Len(); n < SlotCount/count || n > SlotCount/count+1 {
				t.Errorf("shard %d of %d has %d slots", index, count, n)
			}
			if !all.Intersect(slots).Empty() {
				t.Errorf("shard %d of %d has slots of others", index, count)
			}
			all = all.Union(slots)
			for range 3 {
				uid := types.UID(uuid.NewString())
				if shard.Owns(uid) != slots.Has(SlotOf(uid)) {
					t.Errorf("shard %d of %d: slot %d", index, count, SlotOf(uid))
				}
			}
			shard.Follow("x").LetGo(1)
			shard.Follow("x").Loaded(1)
			shard.Follow("x").Stop()
			if shard.Selector() != slots.Selector() || shard.Changed() != nil {
				t.Errorf("shard %d of %d has another selector, or changes", index, count)
			}
		}
		if all != allSlots() {
			t.Errorf("%d shards have %v", count, all)
		}
	}
}

func TestStatic_RefusesShardsThatDoNotExist(t *testing.T) {
	for _, test := range []RangeError{{0, 0}, {0, -1}, {-1, 2}, {2, 2}, {0, SlotCount + 1}} {
		_, err := Static(test.Index, test.Count)
		var wrong *RangeError
		if !errors.As(err, &wrong) || *wrong != test || !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%+v: error %v", test, err)
		}
	}
}
