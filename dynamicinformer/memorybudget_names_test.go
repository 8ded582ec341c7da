package dynamicinformer_test

import (
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// A change of the names of a set does not repeat the lists that were refused, and a namespace that leaves the set takes its estimate with it.
func TestMemoryBudget_NamesChange(t *testing.T) {
	inBudget(t, func(in budgetCluster) {
		t, types, cluster := in.T, in.types, in.cluster
		createLarge(t, cluster, types[0], "ns", 0, 100)
		createLarge(t, cluster, types[1], "a", 0, 5)
		createLarge(t, cluster, types[1], "b", 0, 100)
		createLarge(t, cluster, types[1], "c", 0, 5)
		f := newFactory(t, cluster, dynamicinformer.WithMemoryBudget(bytesOf(t, cluster, types[0])*3/2), dynamicinformer.WithPageSize(10))
		f.Start(t.Context())
		waitSynced(t, acquire(t, f, types[0].GVR))
		l := acquire(t, f, types[1].GVR, dynamicinformer.WithNamespaces("a", "b"))
		check := func(when string, objects, waiting, listsOfB int) {
			t.Helper()
			time.Sleep(time.Hour)
			lists := 0
			for _, r := range cluster.Requests("list", types[1].GVR) {
				if r.Namespace == "b" {
					lists++
				}
			}
			if i, b := l.Status(), f.MemoryBudget(); i.Objects != objects || b.Waiting != waiting || lists != listsOfB {
				t.Errorf("%s: %d objects, %d lists wait, %d pages of b, want %d, %d, %d", when, i.Objects, b.Waiting, lists, objects, waiting, listsOfB)
			}
		}
		set := func(names ...string) {
			t.Helper()
			if err := l.SetNamespaces(names...); err != nil {
				t.Fatal(err)
			}
		}
		check("b is refused", 5, 1, 1)
		set("a", "b", "c")
		check("c is added", 10, 1, 1)
		l.Retry()
		check("a retry", 10, 1, 2)
		set("a", "c")
		check("b is removed", 10, 0, 2)
		deleteLarge(t, cluster, types[1], "b", 5, 100)
		set("a", "b", "c")
		check("b is small, and added", 15, 0, 3)
		checkBudget(t, f)
		shutdown(t, f)
	})
}

// A namespace that leaves the set and comes back at once waits for room as before. If its absence was noticed, it is listed again. In any case,
// the status has the reason why it is not listed.
func TestMemoryBudget_ANameLeavesAndComesBack(t *testing.T) {
	for name, tc := range map[string]struct {
		names   []string
		change  [][]string
		pause   time.Duration // between the changes
		shrinks bool          // b fits when it comes back
	}{
		"at once, beside a namespace that is listed":     {[]string{"a", "b"}, [][]string{{"a"}, {"a", "b"}}, 0, false},
		"at once, with all namespaces":                   {[]string{"a", "b"}, [][]string{{}, {"a", "b"}}, 0, false},
		"at once, and no namespace is listed":            {[]string{"b"}, [][]string{{"c"}, {"b"}}, 0, false},
		"an hour later, and no namespace is listed":      {[]string{"b"}, [][]string{{"c"}, {"b"}}, time.Hour, false},
		"an hour later, beside one that can't be listed": {[]string{"b", "c"}, [][]string{{"c"}, {"b", "c"}}, time.Hour, false},
		"an hour later, and it fits":                     {[]string{"b"}, [][]string{{"c"}, {"b"}}, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBudget(t, func(in budgetCluster) {
				types, cluster := in.types, in.cluster
				createLarge(in.T, cluster, types[0], "ns", 0, 30)
				createLarge(in.T, cluster, types[1], "a", 0, 2)
				createLarge(in.T, cluster, types[1], "b", 0, 30)
				createLarge(in.T, cluster, types[1], "c", 0, 30)
				f := newFactory(in.T, cluster, dynamicinformer.WithMemoryBudget(bytesOf(in.T, cluster, types[0])*3/2), dynamicinformer.WithPageSize(10))
				f.Start(in.Context())
				waitSynced(in.T, acquire(in.T, f, types[0].GVR))
				l := acquire(in.T, f, types[1].GVR, dynamicinformer.WithNamespaces(tc.names...))
				time.Sleep(time.Hour)
				if tc.shrinks {
					deleteLarge(in.T, cluster, types[1], "b", 2, 30)
				}
				for _, names := range tc.change {
					if err := l.SetNamespaces(names...); err != nil {
						in.Fatal(err)
					}
					time.Sleep(tc.pause)
				}
				time.Sleep(time.Hour)
				for _, n := range l.Status().Namespaces {
					if fits := n.Name == "a" || tc.shrinks; n.Listed != fits || (n.Reason == status.ReasonOverBudget) == fits {
						in.Errorf("%+v", n)
					}
				}
				checkBudget(in.T, f)
				shutdown(in.T, f)
			})
		})
	}
}
