package source

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
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

// A list that replaces a watch may have the first lists of namespaces. Their objects count once while they move to the cache.
func TestArrivals_ObjectsOfNewNamespacesCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		cluster, memory, set := fakecluster.New(fakecluster.Type{GVR: gvr, Kind: "Widget", Namespaced: true}), budget.New(1<<20), NewNamespaces("a")
		for _, namespace := range []string{"b", "c"} {
			for i := range 30 {
				obj := &unstructured.Unstructured{Object: map[string]any{}}
				obj.SetName(fmt.Sprint("o", i))
				if _, err := cluster.Resource(gvr).Namespace(namespace).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := New(Config{Client: Unstructured(cluster), GVR: gvr, Namespaces: set, Budget: memory, Polling: time.Minute})
		if _, err := s.gate.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		set.Set("a", "b", "c")
		var most int64
		w := &resumableWatch{gate: s.gate, out: func(watch.Event) bool {
			now := memory.Status()
			most = max(most, now.Caches+now.Lists)
			return true
		}}
		of, changed := s.gate.available.Current()
		if !w.relist(t.Context(), of, changed) {
			t.Fatal("the watch ends")
		}
		if now := memory.Status(); now.Lists != 0 || s.State().Objects != 60 || most > now.Caches*3/2 {
			t.Errorf("the cache takes %d bytes, and the lists %d; %d objects; it took %d", now.Caches, now.Lists, s.State().Objects, most)
		}
	})
}
