package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/status"
)

func noObjects() (objects, common int64) { return 0, 0 }

// Room that is granted in the moment in which the type changes is not kept.
func TestArrivals_RoomIsNotKeptWhenTheTypeChanges(t *testing.T) {
	memory := budget.New(100)
	g := &gate{account: memory.Account(noObjects)}
	list, err := g.account.Begin("", true)
	if err != nil {
		t.Fatal(err)
	}
	list.Refuse(50) // it fits by now
	changed := make(chan struct{})
	close(changed)
	for range 100 { // one of two closed channels is chosen at random
		if !g.awaitRoom(t.Context(), true, []string{""}, nil, news{changed: changed}, nil) {
			if got := memory.Status(); got != (status.Budget{Limit: 100}) {
				t.Fatalf("the budget is %+v", got)
			}
		} else {
			g.account.Abandon("")
		}
	}
}

// A list whose first page is short is not refused by chance: all objects of the page are visited as a whole.
func TestArrivals_EstimatesOfAShortPageAreEqual(t *testing.T) {
	page := &unstructured.UnstructuredList{}
	for i := range 10 {
		members := map[string]any{}
		for n := range 10 {
			members[fmt.Sprint("m", n)] = strings.Repeat("x", 10+1000*(n%2))
		}
		page.Items = append(page.Items, unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": fmt.Sprint("a", i), "uid": fmt.Sprint("u", i)}, "spec": map[string]any{"a": map[string]any{"b": members}},
		}})
	}
	estimates := map[int64]bool{}
	for range 20 {
		g := &gate{account: budget.New(1 << 30).Account(noObjects)}
		room, err := g.account.Begin("", true)
		if err != nil {
			t.Fatal(err)
		}
		a := &arrivals{gate: g, room: room, of: &arriving{whole: true}}
		if _, err := a.add(page, true); err != nil {
			t.Fatal(err)
		}
		estimates[a.estimate()/10] = true // it is computed with floating-point numbers
	}
	if len(estimates) != 1 {
		t.Errorf("estimates of equal pages: %v", slices.Sorted(maps.Keys(estimates)))
	}
}

// The pages of a list that was refused are not kept while other namespaces are listed.
func TestArrivals_RefusedPagesAreDropped(t *testing.T) {
	g := &gate{account: budget.New(1).Account(noObjects)}
	room, err := g.account.Begin("", true)
	if err != nil {
		t.Fatal(err)
	}
	a := &arrivals{gate: g, room: room, of: &arriving{whole: true}}
	page := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}}}
	if _, err := a.add(page, true); !isOver(err) {
		t.Fatalf("error %v, want one of the budget", err)
	}
	if a.kept != nil || a.bytes != 0 {
		t.Errorf("%d objects are kept", len(a.kept))
	}
}
