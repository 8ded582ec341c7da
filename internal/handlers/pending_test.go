package handlers

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// thing returns an object whose state is version.
func thing(name, uid string, version int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: fmt.Sprint(version),
	}}
}

// text describes an event as its kind, and the UID and version of its objects.
func (e event) text() string {
	of := func(obj any) string {
		if last, is := obj.(cache.DeletedFinalStateUnknown); is {
			obj = last.Obj
		}
		if obj == nil {
			return "?"
		}
		m := obj.(*metav1.PartialObjectMetadata)
		return string(m.UID) + m.ResourceVersion
	}
	switch e.kind {
	case added:
		if e.initial {
			return "add " + of(e.obj) + " initial"
		}
		return "add " + of(e.obj)
	case updated:
		return "update " + of(e.old) + " " + of(e.obj)
	}
	if e.moved {
		return "moved " + of(e.obj)
	}
	return "delete " + of(e.obj)
}

// drain returns the texts and the number of the remaining events.
func drain(p *pending) (texts []string, counts uint64) {
	for e, some := p.next(); some; e, some = p.next() {
		texts = append(texts, e.text())
		counts += e.counts
	}
	return texts, counts
}

func TestPending_MergesTheEventsOfOneObject(t *testing.T) {
	a1, a2, a3 := thing("x", "a", 1), thing("x", "a", 2), thing("x", "a", 3)
	b4, b5 := thing("x", "b", 4), thing("x", "b", 5)
	unknown := cache.DeletedFinalStateUnknown{Key: "ns/x", Obj: a2}
	for name, tc := range map[string]struct {
		events []event
		want   []string
	}{
		"addition and update":                          {[]event{addition(a1, false), update(a1, a2)}, []string{"add a2"}},
		"addition of the initial list and update":      {[]event{addition(a1, true), update(a1, a2)}, []string{"add a2 initial"}},
		"two updates":                                  {[]event{update(a1, a2), update(a2, a3)}, []string{"update a1 a3"}},
		"update and deletion":                          {[]event{update(a1, a2), deletion(a3)}, []string{"delete a3"}},
		"update and deletion with an unknown state":    {[]event{update(a1, a2), deletion(unknown)}, []string{"delete a2"}},
		"addition and deletion":                        {[]event{addition(a1, true), deletion(a2)}, nil},
		"addition and deletion with an unknown state":  {[]event{addition(a1, false), deletion(unknown)}, nil},
		"deletion and addition":                        {[]event{deletion(a3), addition(b4, false)}, []string{"delete a3", "add b4"}},
		"deletion, addition and update":                {[]event{deletion(a3), addition(b4, false), update(b4, b5)}, []string{"delete a3", "add b5"}},
		"deletion, addition and deletion":              {[]event{deletion(a3), addition(b4, false), deletion(b5)}, []string{"delete a3"}},
		"update, deletion, addition":                   {[]event{update(a1, a2), deletion(a2), addition(b4, false)}, []string{"delete a2", "add b4"}},
		"addition, deletion, addition":                 {[]event{addition(a1, true), deletion(a1), addition(b4, false)}, []string{"add b4"}},
		"move, addition and deletion":                  {[]event{moving(a1), addition(a2, false), deletion(a3)}, []string{"delete a3"}},
		"move, addition, deletion and addition":        {[]event{moving(a1), addition(a2, false), deletion(a3), addition(b4, false)}, []string{"delete a3", "add b4"}},
		"move, addition and move":                      {[]event{moving(a1), addition(a2, false), moving(a3)}, []string{"moved a3"}},
		"move, another addition and deletion":          {[]event{moving(a1), addition(b4, false), deletion(b5)}, []string{"delete a1"}},
		"unknown move, another addition and deletion":  {[]event{moving(unknown), addition(b4, false), deletion(b5)}, []string{"delete a2"}},
		"move, another addition and move":              {[]event{moving(a1), addition(b4, false), moving(b5)}, []string{"moved a1"}},
		"deletion, addition and move":                  {[]event{deletion(a1), addition(a2, false), moving(a3)}, []string{"moved a3"}},
		"deletion, another addition and move":          {[]event{deletion(a3), addition(b4, false), moving(b5)}, []string{"delete a3"}},
		"resync":                                       {[]event{update(a1, a1)}, []string{"update a1 a1"}},
		"resyncs":                                      {[]event{update(a1, a1), update(a1, a1)}, []string{"update a1 a1"}},
		"resync and update":                            {[]event{update(a1, a1), update(a1, a2)}, []string{"update a1 a2"}},
		"update and resync":                            {[]event{update(a1, a2), update(a2, a2)}, []string{"update a1 a2"}},
		"resync and deletion":                          {[]event{update(a1, a1), deletion(a1)}, []string{"delete a1"}},
		"an impossible order keeps the last addition":  {[]event{addition(a1, false), addition(b4, false)}, []string{"add b4"}},
		"an impossible order keeps an update":          {[]event{deletion(a1), update(b4, b5)}, []string{"delete a1", "add b5"}},
		"an impossible order keeps no move":            {[]event{moving(a1), update(a1, a2), deletion(a3)}, []string{"delete a3"}},
		"an impossible order keeps the last deletion":  {[]event{deletion(a1), deletion(b4)}, []string{"delete b4"}},
		"an object without a name is not merged":       {[]event{{kind: added, obj: nil, counts: 1}, {kind: added, obj: nil, counts: 1}}, []string{"add ?", "add ?"}},
		"an object without a name stays beside others": {[]event{addition(a1, false), {kind: added, obj: nil, counts: 1}, update(a1, a2)}, []string{"add a2", "add ?"}},
	} {
		t.Run(name, func(t *testing.T) {
			var p pending
			given, merged, initial, dropped := uint64(0), uint64(0), 0, 0
			for _, e := range tc.events {
				m, d := p.add(e)
				given, merged, initial, dropped = given+e.counts, merged+m, initial+asInt(e.initial), dropped+d
			}
			left := 0
			for o := p.first; o != nil; o = o.after {
				left += o.initial()
			}
			got, counts := drain(&p)
			resyncs := 0
			for _, text := range got {
				if text == "update a1 a1" {
					resyncs++
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if counts+merged != given || counts != uint64(len(got)-resyncs) {
				t.Errorf("%d events given, %d delivered and %d merged", given, counts, merged)
			}
			if left+dropped != initial {
				t.Errorf("%d additions of the initial list, %d pending and %d dropped", initial, left, dropped)
			}
			if p.first != nil || p.last != nil || len(p.byName) != 0 {
				t.Errorf("not empty: %+v", p)
			}
		})
	}
}

func TestPending_KeepsTheOrderOfFirstEvents(t *testing.T) {
	var p pending
	for _, e := range []event{
		addition(thing("x", "x", 1), false), addition(thing("y", "y", 2), false), addition(thing("z", "z", 3), false),
		update(thing("x", "x", 1), thing("x", "x", 4)), deletion(thing("y", "y", 2)), addition(thing("y", "w", 5), false),
	} {
		p.add(e)
	}
	got, _ := drain(&p)
	if diff := cmp.Diff([]string{"add x4", "add z3", "add w5"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The last state of an object that has moved may be an earlier one than the one in which it was deleted.
func TestPending_DeletionOfAnObjectThatHadMovedHasNoFinalState(t *testing.T) {
	var p pending
	a1, b2 := thing("x", "a", 1), thing("x", "b", 2)
	for _, e := range []event{moving(a1), addition(b2, false), deletion(b2)} {
		p.add(e)
	}
	got, _ := p.next()
	if want := any(cache.DeletedFinalStateUnknown{Key: "ns/x", Obj: a1}); got.obj != want {
		t.Errorf("got %v, want %v", got.obj, want)
	}
}

// When a type is replaced, the informer deletes all objects before it adds the first one of the new type.
func TestPending_DeletionsBeforeAnAdditionStayBeforeIt(t *testing.T) {
	var p pending
	for _, e := range []event{
		deletion(thing("x", "x", 1)), deletion(thing("y", "y", 2)), addition(thing("x", "v", 3), false), update(thing("x", "v", 3), thing("x", "v", 4)),
		addition(thing("y", "w", 5), false), deletion(thing("y", "w", 6)), addition(thing("y", "z", 7), false),
	} {
		p.add(e)
	}
	got, _ := drain(&p)
	if diff := cmp.Diff([]string{"delete x1", "delete y2", "add v4", "add z7"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A map does not shrink: a long initial list would use memory for ever.
func TestPending_ReleasesMemoryWhenEmpty(t *testing.T) {
	var p pending
	for _, objects := range []int{shrinkAbove, shrinkAbove + 1} {
		for i := range objects {
			p.add(addition(thing(fmt.Sprint(i), "a", 1), true))
		}
		drain(&p)
		if released := p.byName == nil; released != (objects > shrinkAbove) {
			t.Errorf("after %d objects, the map is released: %v", objects, released)
		}
	}
}

// model checks that a handler's events are possible, and has the state that the handler knows.
type model struct {
	knows    map[string]string // name to UID and version
	problems []string
}

func (m *model) handle(e event) {
	name, _ := cache.DeletionHandlingObjectToName(e.obj)
	before, known := m.knows[name.Name]
	switch {
	case e.kind == added && known,
		e.kind == updated && (!known || e.text() != "update "+before+" "+addition(e.obj, false).text()[len("add "):]),
		e.kind == deleted && (!known || e.text()[len("delete ")] != before[0]):
		m.problems = append(m.problems, fmt.Sprintf("%s of %s, which was %q", e.text(), name, before))
	}
	if e.kind == deleted {
		delete(m.knows, name.Name)
		return
	}
	m.knows[name.Name] = addition(e.obj, false).text()[len("add "):]
}

// The events of some objects arrive in a random order, and a handler of random speed gets them. No event
// contradicts the previous one, the number of pending events has a limit, and at the end the handler knows
// what the cache has.
func TestPending_HandlerKnowsTheCacheAfterRandomEvents(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 15))
		p := pending{limit: r.IntN(5), reduce: (&Set{}).reducedEvent}
		handler := &model{knows: map[string]string{}}
		stored := map[string]*metav1.PartialObjectMetadata{}
		objects, speed := 1+r.IntN(8), r.IntN(4) // 0: it gets no events before the end
		given, delivered, merged := uint64(0), uint64(0), uint64(0)
		for version := range 400 {
			name := fmt.Sprint(r.IntN(objects))
			old := stored[name]
			var e event
			switch action := r.IntN(5); {
			case old == nil:
				stored[name] = thing(name, string(rune('a'+r.IntN(26))), version)
				e = addition(stored[name], version < 10)
			case action == 0:
				e = update(old, old)
			case action == 1 && r.IntN(2) == 0:
				delete(stored, name)
				e = deletion(cache.DeletedFinalStateUnknown{Key: "ns/" + name, Obj: old})
			case action == 1:
				delete(stored, name)
				e = deletion(thing(name, string(old.UID), version))
			default:
				stored[name] = thing(name, string(old.UID), version)
				e = update(old, stored[name])
			}
			m, _ := p.add(e)
			given, merged = given+e.counts, merged+m
			waiting, states := uint64(0), 0
			for o := p.first; o != nil; o = o.after {
				waiting += o.counts()
				states += o.states()
			}
			if states != p.states || p.limit > 0 && states > p.limit {
				t.Fatalf("seed %d: %d states are pending, %d are counted, and the limit is %d", seed, states, p.states, p.limit)
			}
			if len(p.byName) > objects || waiting != given-delivered-merged {
				t.Fatalf("seed %d: %d of %d objects are pending, and %d events of %d-%d-%d", seed, len(p.byName), objects, waiting, given, delivered, merged)
			}
			for range r.IntN(1 + speed) {
				if e, some := p.next(); some {
					handler.handle(e)
					delivered += e.counts
				}
			}
		}
		for e, some := p.next(); some; e, some = p.next() {
			handler.handle(e)
			delivered += e.counts
		}
		want := map[string]string{}
		for name, obj := range stored {
			want[name] = addition(obj, false).text()[len("add "):]
		}
		if diff := cmp.Diff(want, handler.knows); diff != "" || delivered+merged != given {
			t.Errorf("seed %d: %d events, %d delivered, %d merged; objects (-cache +handler):\n%s", seed, given, delivered, merged, diff)
		}
		for _, problem := range handler.problems {
			t.Errorf("seed %d: %s", seed, problem)
		}
	}
}
