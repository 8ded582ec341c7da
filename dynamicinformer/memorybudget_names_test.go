package dynamicinformer_test

import (
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/dynamicinformer"
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
