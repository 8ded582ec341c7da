package leases

import (
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/test/churn"
)

func TestExcess_ReportsWatchesWithoutALease(t *testing.T) {
	all, inA := scope{"t1", ""}, scope{"t1", "a"}
	for _, tc := range []struct {
		name         string
		open, leases map[scope]int
		want         int
	}{
		{"one each", map[scope]int{all: 1, inA: 1}, map[scope]int{all: 1, inA: 1}, 0},
		{"leases that share a watch", map[scope]int{all: 1}, map[scope]int{all: 3}, 0},
		{"a watch of a namespace that no lease has", map[scope]int{all: 1, inA: 1}, map[scope]int{all: 3}, 1},
		{"more watches than leases", map[scope]int{inA: 2}, map[scope]int{all: 1, inA: 1}, 1},
		{"a type without leases", map[scope]int{all: 1, inA: 1}, nil, 2},
	} {
		if found := excess(tc.open, tc.leases); len(found) != tc.want || len(found) > 0 && found[0].Invariant != churn.Released {
			t.Errorf("%s: %v", tc.name, found)
		}
	}
}

func TestInBoth_NeedsEqualStates(t *testing.T) {
	x, y := churn.Observation{Name: "x", ResourceVersion: "1"}, churn.Observation{Name: "y", ResourceVersion: "1"}
	later := y
	later.ResourceVersion = "2"
	both := inBoth(map[string]churn.Observation{"x": x, "y": y, "z": x}, map[string]churn.Observation{"x": x, "y": later})
	if len(both) != 1 || both["x"] != x {
		t.Errorf("got %v", both)
	}
}

func TestWithoutState_ReportsDeletionsUnlessTheyMayBeMerged(t *testing.T) {
	for merged, want := range map[bool]int{false: 1, true: 0} {
		r := &churn.Recorder{View: churn.View{Merged: merged}}
		x := newObject("x")
		r.OnAdd(x, true)
		r.OnDelete(x)
		r.OnAdd(x, false)
		r.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/x", Obj: x})
		if found := withoutState(r); len(found) != want {
			t.Errorf("merged: %v: %v, want %d", merged, found, want)
		}
	}
}
