package sharding

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

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
		if !errors.As(err, &wrong) || *wrong != test {
			t.Errorf("%+v: error %v", test, err)
		}
	}
}

// owners returns the member of each slot.
func owners(members []string) (owner [SlotCount]string) {
	rankings := map[string]*ranking{}
	for _, m := range members {
		rankings[m] = newRanking(m)
	}
	for slot := range owner {
		for _, m := range members {
			if owner[slot] == "" || rankings[m].beats(rankings[owner[slot]], slot, m, owner[slot]) {
				owner[slot] = m
			}
		}
	}
	return owner
}

func TestRanking_AMemberThatComesOrGoesMovesItsOwnSlotsOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		members := make([]string, 1+random.IntN(12))
		for i := range members {
			members[i] = "pod-" + strconv.Itoa(random.Int())
		}
		with := owners(append([]string{"new"}, members...))
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		without := owners(members)
		moved := 0
		for slot := range with {
			if with[slot] == "new" {
				moved++
			} else if with[slot] != without[slot] {
				t.Fatalf("slot %d moves from %s to %s", slot, without[slot], with[slot])
			}
		}
		if share := SlotCount / (len(members) + 1); moved < share/3 || moved > 2*share+8 {
			t.Errorf("%d of %d slots move to member %d", moved, SlotCount, len(members)+1)
		}
	}
}

func TestRanking_SharesAreEven(t *testing.T) {
	for _, test := range []struct {
		members int
		most    float64 // standard deviation, in parts of the mean
	}{{2, 0.05}, {4, 0.09}, {8, 0.15}} {
		sum, n := 0.0, 0
		for group := range 200 {
			members := make([]string, test.members)
			for i := range members {
				members[i] = fmt.Sprintf("widgets-%d-%d", group, i)
			}
			counts := map[string]int{}
			for _, m := range owners(members) {
				counts[m]++
			}
			mean := float64(SlotCount) / float64(test.members)
			for _, m := range members {
				d := float64(counts[m])/mean - 1
				sum += d * d
				n++
			}
		}
		if variance := sum / float64(n); variance > test.most*test.most {
			t.Errorf("%d members: the variance is %v", test.members, variance)
		} else {
			t.Logf("%d members: the variance is %v, the most is %v", test.members, variance, test.most*test.most)
		}
	}
}

// Weights are a part of the protocol: members of two versions of this package must agree.
func TestRanking_DoesNotChange(t *testing.T) {
	r := newRanking("widgets-0")
	if got := []uint64{r[0], r[1], r[255]}; fmt.Sprintf("%x", got) != "[19de441eb064a909 c950185c3453a96 573f6e2a202ca1c6]" {
		t.Errorf("got %x", got)
	}
}

func TestRanking_EqualWeightsHaveOneOwner(t *testing.T) {
	r := newRanking("x")
	if r.beats(r, 0, "a", "b") == r.beats(r, 0, "b", "a") {
		t.Error("both members win, or none")
	}
}
