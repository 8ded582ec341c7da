package leases

import (
	"maps"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/churn"
)

func TestExcess_ReportsWatchesWithoutAnInformer(t *testing.T) {
	all, inA := scope{"t1", ""}, scope{"t1", "a"}
	for _, tc := range []struct {
		name   string
		open   map[scope]int
		wanted map[scope]bounds
		want   int
	}{
		{"one each", map[scope]int{all: 1, inA: 1}, map[scope]bounds{all: {0, 1}, inA: {1, 1}}, 0},
		{"informers that have no watch", nil, map[scope]bounds{all: {1, 3}}, 0},
		{"a watch of a namespace that no lease has", map[scope]int{all: 1, inA: 1}, map[scope]bounds{all: {1, 3}}, 1},
		{"more watches than informers", map[scope]int{inA: 2}, map[scope]bounds{all: {1, 1}, inA: {1, 1}}, 1},
		{"a type without leases", map[scope]int{all: 1, inA: 1}, nil, 2},
	} {
		if found := excess(tc.open, tc.wanted); len(found) != tc.want || len(found) > 0 && found[0].Invariant != churn.Released {
			t.Errorf("%s: %v", tc.name, found)
		}
	}
}

func TestDeficit_ReportsInformersWithoutAWatch(t *testing.T) {
	all, inA := scope{"t1", ""}, scope{"t1", "a"}
	for _, tc := range []struct {
		name   string
		open   map[scope]int
		wanted map[scope]bounds
		want   int
	}{
		{"one each", map[scope]int{all: 1, inA: 1}, map[scope]bounds{all: {1, 1}, inA: {1, 1}}, 0},
		{"an informer that needs no watch", nil, map[scope]bounds{all: {0, 1}}, 0},
		{"an informer without a watch", map[scope]int{inA: 1}, map[scope]bounds{all: {1, 1}, inA: {1, 1}}, 1},
		{"one of two informers without a watch", map[scope]int{all: 1}, map[scope]bounds{all: {2, 2}}, 1},
		{"no watch", nil, map[scope]bounds{all: {1, 1}, inA: {1, 1}}, 2},
	} {
		if found := deficit(tc.open, tc.wanted); len(found) != tc.want || len(found) > 0 && found[0].Invariant != churn.Status {
			t.Errorf("%s: %v", tc.name, found)
		}
	}
}

func TestInformers_Bounds(t *testing.T) {
	inA, inB := scope{"t1", "a"}, scope{"t1", "b"}
	synced := status.Informer{ID: 1, State: status.StateSynced}
	other, degraded, polls := synced, synced, synced
	other.ID, degraded.State, polls.PollPeriod = 2, status.StateDegraded, time.Second
	onlyB := func(at scope) bool { return at == inB }
	for _, tc := range []struct {
		name   string
		leases []status.Informer
		served func(scope) bool
		want   map[scope]bounds
	}{
		{"an informer", []status.Informer{synced}, nil, map[scope]bounds{inA: {1, 1}, inB: {1, 1}}},
		{"leases that share an informer", []status.Informer{synced, synced}, nil, map[scope]bounds{inA: {1, 1}, inB: {1, 1}}},
		{"two informers", []status.Informer{synced, other}, nil, map[scope]bounds{inA: {2, 2}, inB: {2, 2}}},
		{"an informer that is not synced", []status.Informer{degraded, other}, nil, map[scope]bounds{inA: {1, 2}, inB: {1, 2}}},
		{"an informer that lists again and again", []status.Informer{polls}, nil, map[scope]bounds{inA: {0, 1}, inB: {0, 1}}},
		{"a namespace that is forbidden", []status.Informer{synced}, onlyB, map[scope]bounds{inA: {0, 1}, inB: {1, 1}}},
	} {
		all := informers{}
		for _, at := range tc.leases {
			all.add(at, []scope{inA, inB}, func(at scope) bool { return tc.served == nil || tc.served(at) })
		}
		if got := all.bounds(); !maps.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
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
