package source

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Lists join, get pages, end and leave at random. The limits hold, the sums are right, no list waits
// without a need, and all end.
func TestListQueue_RandomLists(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 15))
			q := NewListQueue(r.IntN(4), int64(r.IntN(2))*(3<<20))
			if q == nil {
				return
			}
			var all []*turn
			for range 300 {
				switch r.IntN(4) {
				case 0, 1:
					join := q.join
					if r.IntN(8) == 0 {
						join = q.rejoin
					}
					all = append(all, join())
				default:
					if len(all) == 0 {
						continue
					}
					i := r.IntN(len(all))
					turn := all[i]
					running := !turn.waits()
					switch action := r.IntN(4); {
					case action == 0 && running && q.bytes > 0:
						page := int64(r.IntN(1 << 20))
						if r.IntN(4) == 0 {
							turn.arrive(page)
						} else {
							turn.resize(page, page+int64(r.IntN(5<<20)))
						}
					case action == 1 || running:
						turn.leave()
						turn.leave()
						all = slices.Delete(all, i, i+1)
					}
				}
				checkQueue(t, q, all)
			}
			for len(all) > 0 { // those that can, end
				i := slices.IndexFunc(all, func(turn *turn) bool { return !turn.waits() })
				if i < 0 {
					t.Fatalf("seed %d: none of %d lists can continue", seed, len(all))
				}
				all[i].leave()
				all = slices.Delete(all, i, i+1)
				checkQueue(t, q, all)
			}
			if q.begun != 0 || q.charged != 0 || len(q.waiting)+len(q.holding) != 0 {
				t.Errorf("seed %d: at the end: %+v", seed, q)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A list that waits for the budget makes no progress, and keeps its turn.
func TestListQueue_ListThatWaitsForTheBudgetKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewListQueue(0, 2<<20)
		first, second := q.join(), q.join()
		second.resize(1<<20, 2<<20)
		for range 6 {
			time.Sleep(progressWithin / 2)
			first.progress()
		}
		if !second.waits() || second.ended {
			t.Error("the second list does not wait")
		}
		first.leave()
		<-second.ready
		time.Sleep(progressWithin)
		synctest.Wait()
		if !second.ended {
			t.Error("the second list keeps its turn without progress")
		}
	})
}

// The first namespaces of a set may have one page each, and a later one more.
func TestListQueue_ASetWaitsForTheBudgetAfterNamespacesOfOnePage(t *testing.T) {
	q := NewListQueue(0, 4<<20)
	other, set := q.join(), q.join()
	for range 2 {
		set.arrive(1 << 20)
	}
	if set.waits() || set.charge != 2<<20 {
		t.Errorf("two pages: it waits = %v, with %d bytes", set.waits(), set.charge)
	}
	set.resize(1<<19, 3<<19)
	if !set.waits() || set.charge != 5<<19 || set.wants != 7<<19 {
		t.Errorf("a page of more: it waits = %v, with %d of %d bytes", set.waits(), set.charge, set.wants)
	}
	other.leave()
	set.arrive(3 << 20)
	if set.waits() || set.charge != q.bytes {
		t.Errorf("at the end: it waits = %v, with %d bytes", set.waits(), set.charge)
	}
	set.leave()
}

// A server may report any number of remaining objects.
func TestTurn_SizeIsAtMostTheBudget(t *testing.T) {
	const budget = 8 << 20
	for remaining, least := range map[int64]int64{
		math.MinInt64: 1000, -1: 1000, 0: 1000, 1000: 100_000, math.MaxInt64 / 2: budget, math.MaxInt64: budget,
	} {
		q := NewListQueue(0, budget)
		list := &unstructured.UnstructuredList{Object: map[string]any{}}
		for range 10 {
			list.Items = append(list.Items, unstructured.Unstructured{Object: map[string]any{"text": strings.Repeat("x", 100)}})
		}
		list.SetContinue("more")
		list.SetRemainingItemCount(&remaining)
		turn := q.join()
		for range 3 {
			turn.page(list)
		}
		if turn.waits() || q.charged < least || q.charged > budget {
			t.Errorf("%d remaining objects: %d bytes, of %d", remaining, q.charged, budget)
		}
		turn.leave()
		if q.charged != 0 {
			t.Errorf("%d bytes after the end", q.charged)
		}
	}
}

func checkQueue(t *testing.T, q *ListQueue, all []*turn) {
	t.Helper()
	begun, charged, running := 0, int64(0), 0
	for _, turn := range all {
		if turn.begun {
			begun++
			charged += turn.charge
		}
		if turn.begun && !turn.waits() {
			running++
		}
	}
	switch {
	case q.begun != begun || q.charged != charged || len(q.holding) != begun-running || len(q.waiting) != len(all)-begun:
		t.Errorf("%d have begun with %d bytes, want %d with %d; %d hold, %d wait, of %d", q.begun, q.charged, begun, charged, len(q.holding), len(q.waiting), len(all))
	case q.lists > 0 && begun > q.lists:
		t.Errorf("%d lists at a time", begun)
	case len(all) > 0 && running == 0:
		t.Errorf("none of %d lists continues", len(all))
	case len(q.waiting) > 0 && len(q.holding) == 0 && (q.lists == 0 || begun < q.lists) && (q.bytes == 0 || charged+firstPageBytes <= q.bytes):
		t.Errorf("%d lists wait without a need", len(q.waiting))
	}
}
