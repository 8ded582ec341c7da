package churn

import (
	"cmp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

func TestMissed(t *testing.T) {
	setA, aThenB := &NamespaceSets{}, &NamespaceSets{}
	setA.Change("a")
	aThenB.Change("a")
	all := View{Name: "h", Type: "t1"}
	whole := func(s sample, r *Recorder) {
		r.OnUpdate(s.x(1), s.x(2))
		r.OnUpdate(s.x(2), s.x(3))
		r.OnDelete(s.x(3))
	}
	twice := func(s sample, r *Recorder) {
		r.OnUpdate(s.x(1), s.x(2))
		r.OnUpdate(s.x(2), s.x(2))
		r.OnUpdate(s.x(2), s.x(3))
		r.OnDelete(s.x(3))
	}
	unknown := func(s sample, r *Recorder) {
		r.OnUpdate(s.x(1), s.x(2))
		r.OnUpdate(s.x(2), s.x(3))
		r.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/x", Obj: s.x(3)})
	}
	without2 := func(s sample, r *Recorder) { r.OnUpdate(s.x(1), s.x(3)); r.OnDelete(s.x(3)) }
	for _, tc := range []struct {
		name   string
		view   View
		during func(s sample, r *Recorder) // between two times at rest
		events func(s sample, r *Recorder)
		lists  int
		misses bool
		waits  bool // for the last event
	}{
		{"all", all, nil, whole, 0, false, false},
		{"an update is missing", all, nil, without2, 0, true, false},
		{"an update comes twice", all, nil, twice, 0, true, false},
		{"a deletion has no final state", all, nil, unknown, 0, true, false},
		{"a deletion has no final state, and a list was sent", all, nil, unknown, 1, false, false},
		{"an update comes twice, and a list was sent", all, nil, twice, 1, false, false},
		{"an update comes twice, and updates may be merged", View{Name: "h", Type: "t1", Merged: true}, nil, twice, 0, false, false},
		{"the last state before comes again", all, nil, func(s sample, r *Recorder) { r.OnUpdate(s.x(1), s.x(1)); whole(s, r) }, 0, false, false},
		{"an update is missing, and a list was sent", all, nil, without2, 1, false, false},
		{"the deletion is missing", all, nil, func(s sample, r *Recorder) { r.OnUpdate(s.x(1), s.x(2)); r.OnUpdate(s.x(2), s.x(3)) }, 0, true, false},
		{"updates may be merged", View{Name: "h", Type: "t1", Merged: true}, nil, without2, 0, false, false},
		{"an object leaves the selection, and returns", View{Name: "h", Type: "t1", Color: "red"}, nil, func(s sample, r *Recorder) {
			r.OnDelete(at(s.x(1), "2"))
			r.OnAdd(s.x(3), false)
			r.OnDelete(s.x(3))
		}, 0, false, false},
		{"an object leaves the selection, and the deletion is missing", View{Name: "h", Type: "t1", Color: "red"}, nil, without2, 0, true, false},
		{"an object leaves the selection, and a list was sent", View{Name: "h", Type: "t1", Color: "red"}, nil, without2, 1, false, false},
		{"the selected state is missing", View{Name: "h", Type: "t1", Color: "blue"}, nil, without2, 0, true, false},
		{"another namespace", View{Name: "h", Type: "t1", Namespaces: []string{"b"}}, nil, func(sample, *Recorder) {}, 0, false, false},
		{"a set has the namespace", View{Name: "h", Type: "t1", Sets: setA}, nil, without2, 0, true, false},
		{"a set has lost the namespace", View{Name: "h", Type: "t1", Sets: aThenB}, func(sample, *Recorder) { aThenB.Change("b") }, without2, 0, false, false},
		{"the handler was added meanwhile", all, func(_ sample, r *Recorder) { r.Since = time.Now() }, without2, 0, false, false},
		{"the handler was removed meanwhile", all, func(_ sample, r *Recorder) { r.Removed(1) }, without2, 0, false, false},
		{"etcd was restored meanwhile", all, func(s sample, _ *Recorder) { s.restored(time.Now()) }, without2, 0, false, false},
		{"another CRD came meanwhile", all, func(s sample, _ *Recorder) {
			s.undefined("t1", time.Now())
			s.defined("t1", Incarnation{UID: "second", Namespaced: true, Served: allVersions})
		}, without2, 0, false, false},
		{"the type was on another server meanwhile", all, func(s sample, _ *Recorder) { s.move(time.Now()); s.move(time.Now()) }, without2, 0, false, false},
		{"the server of the type is down at the end", all, func(s sample, _ *Recorder) { s.down = true }, without2, 0, false, false},
		{"the conversion fails at the end", all, func(s sample, _ *Recorder) { s.typeLocked("t1").unconverted = true }, without2, 0, false, false},
		{"a version was not served at the end", all, func(s sample, _ *Recorder) { s.serves("t1", allVersions[:1]) }, without2, 0, false, false},
		{"the rest is still waiting", all, nil, func(s sample, r *Recorder) { r.OnUpdate(s.x(1), s.x(2)) }, 0, false, true},
		{"the rest is still waiting, and one was left out", all, nil, func(s sample, r *Recorder) { r.OnUpdate(s.x(1), s.x(3)) }, 0, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sample{newWorld("example.com"), time.Now()}
				later := func() time.Time {
					time.Sleep(time.Millisecond) //nolint:forbidigo // in a synctest bubble
					return time.Now()
				}
				s.defined("t1", Incarnation{UID: "first", Namespaced: true, Served: allVersions})
				s.write("a/x", "x1", 1, "red")
				s.backedUp()
				r := &Recorder{View: tc.view}
				r.OnAdd(s.x(1), true)
				lists := 0
				count := func(string) int { return lists }
				s.rested(later(), count)
				if later(); tc.during != nil {
					tc.during(s, r)
				}
				last := s.object("a/z", "z1", 9, cmp.Or(tc.view.Color, "red"))
				s.wrote("t1", s.x(2), later())
				s.wrote("t1", s.x(3), later())
				s.deleted("t1", "a/x", later())
				s.wrote("t1", last, later())
				tc.events(s, r)
				if !tc.waits {
					r.OnAdd(last, false)
				}
				lists = tc.lists
				s.rested(later(), count)
				found := slices.DeleteFunc(r.Check(s.World), func(v Violation) bool { return v.Invariant != Complete && v.Invariant != Changes })
				if (len(found) > 0) != tc.misses {
					t.Errorf("found %v", found)
				}
			})
		})
	}
}

// calmTest is a handler in a bubble.
type calmTest struct {
	sample
	*Recorder
	lists int
}

// later returns the time a millisecond later.
func (c *calmTest) later() time.Time {
	time.Sleep(time.Millisecond) //nolint:forbidigo // in a synctest bubble
	return time.Now()
}

func (c *calmTest) rest() { c.rested(c.later(), func(string) int { return c.lists }) }

func (c *calmTest) write(obj *unstructured.Unstructured) {
	c.wrote("t1", obj, c.later())
	c.later()
}

func (c *calmTest) removeX() {
	c.deleted("t1", "a/x", c.later())
	c.later()
}

// inCalm calls a function in a bubble, and compares the violations of [Complete] and [Changes].
func inCalm(t *testing.T, view View, steps func(c *calmTest), want ...Invariant) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		view.Name, view.Type = "h", "t1"
		c := &calmTest{sample{newWorld("example.com"), time.Now()}, &Recorder{View: view}, 0}
		c.defined("t1", Incarnation{UID: "first", Namespaced: true, Served: allVersions})
		c.later()
		steps(c)
		var found []Invariant
		for _, v := range c.Check(c.World) {
			if (v.Invariant == Complete || v.Invariant == Changes) && !slices.Contains(found, v.Invariant) {
				found = append(found, v.Invariant)
			}
		}
		if !slices.Equal(found, want) {
			t.Errorf("found %v, want %v", c.Check(c.World), want)
		}
	})
}

// Before two times at rest, an object has left the selection and returned, and then was listed again. Between them, it is deleted.
func TestMissed_AnObjectHadLeftTheSelection(t *testing.T) {
	deleted := func(c *calmTest) { c.OnDelete(c.x(3)) }
	again := func(c *calmTest) { c.OnUpdate(c.x(3), c.x(3)) }
	for name, tc := range map[string]struct {
		before, between []func(c *calmTest)
		want            []Invariant
	}{
		"an update comes twice before":     {[]func(*calmTest){again}, []func(*calmTest){deleted}, nil},
		"an update comes twice in between": {nil, []func(*calmTest){again, deleted}, []Invariant{Changes}},
		"the deletion is missing":          {nil, nil, []Invariant{Complete}},
	} {
		t.Run(name, func(t *testing.T) {
			inCalm(t, View{Color: "red"}, func(c *calmTest) {
				for version := range 3 {
					c.write(c.x(version + 1))
				}
				c.OnAdd(c.x(1), true)
				c.OnDelete(at(c.x(1), "2"))
				c.OnAdd(c.x(3), false)
				for _, event := range tc.before {
					event(c)
				}
				c.rest()
				first := c.object("a/y", "y1", 8, "red")
				c.write(first)
				c.removeX()
				c.write(c.z())
				c.OnAdd(first, false)
				for _, event := range tc.between {
					event(c)
				}
				c.OnAdd(c.z(), false)
				c.rest()
			}, tc.want...)
		})
	}
}

// At rest, an object has come and gone, and the handler has not got it yet.
func TestMissed_AListLeavesOutWhatWaits(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lists int // after the second time at rest
		want  []Invariant
	}{
		{"no list", 0, []Invariant{Complete}},
		{"a list", 1, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inCalm(t, View{}, func(c *calmTest) {
				c.rest()
				c.write(c.x(1))
				c.removeX()
				c.rest()
				c.lists += tc.lists
				c.write(c.z())
				c.OnAdd(c.z(), false)
				c.rest()
			}, tc.want...)
		})
	}
}

// Each namespace of a set has its own lists and watches.
func TestMissed_NamespacesHaveNoCommonOrder(t *testing.T) {
	set := func() View {
		sets := &NamespaceSets{}
		sets.Change("a", "b")
		return View{Sets: sets}
	}
	for _, tc := range []struct {
		name string
		view func() View
		want []Invariant
	}{
		{"all namespaces", func() View { return View{} }, []Invariant{Changes, Complete}},
		{"a namespace", func() View { return View{Namespaces: []string{"a"}} }, []Invariant{Changes, Complete}},
		{"a set", set, nil},
		{"namespaces that do not change", func() View { return View{Namespaces: []string{"a", "b"}} }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			other := func(c *calmTest) *unstructured.Unstructured {
				if tc.name == "a namespace" {
					return c.object("a/y", "y1", 4, "blue")
				}
				return c.y()
			}
			inCalm(t, View{}, func(c *calmTest) {
				c.View = tc.view()
				c.View.Name, c.View.Type = "h", "t1"
				c.write(other(c))
				c.OnAdd(other(c), true)
				c.rest()
				c.write(at(other(c), "5"))
				c.write(c.x(1))
				c.OnAdd(c.x(1), false)
				c.OnUpdate(other(c), other(c)) // a list before has it
				c.rest()
			}, tc.want...)
		})
	}
}

// A set that was replaced before two times at rest does not limit what a handler must get between them.
func TestMissed_ASetHasTheNamespaceSinceThen(t *testing.T) {
	for _, tc := range []struct {
		name           string
		before, during []string // the namespaces of sets
		want           []Invariant
	}{
		{"since before", []string{"b", "a"}, nil, []Invariant{Complete}},
		{"another one since before", []string{"a", "b"}, nil, nil},
		{"meanwhile", []string{"b"}, []string{"a"}, nil},
		{"until meanwhile", []string{"b", "a"}, []string{"b"}, nil},
		{"not for a moment", []string{"a"}, []string{"b", "a"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inCalm(t, View{}, func(c *calmTest) {
				sets := &NamespaceSets{}
				c.View.Sets = sets
				for _, name := range tc.before {
					sets.Change(name)
					c.later()
				}
				c.rest()
				c.write(c.x(1))
				for _, name := range tc.during {
					sets.Change(name)
					c.later()
				}
				c.write(c.x(2))
				c.write(c.z())
				c.OnAdd(c.x(2), false)
				c.OnAdd(c.z(), false)
				c.rest()
			}, tc.want...)
		})
	}
}

// An object was deleted and added again when its CRD was learned late. Later, it is deleted.
func TestMissed_AnObjectWasAddedAgain(t *testing.T) {
	for name, want := range map[string][]Invariant{"the deletion comes": nil, "the deletion is missing": {Complete}} {
		t.Run(name, func(t *testing.T) {
			inCalm(t, View{}, func(c *calmTest) {
				c.write(c.x(1))
				c.OnAdd(c.x(1), true)
				c.OnDelete(c.x(1))
				c.OnAdd(c.x(1), false)
				c.rest()
				c.removeX()
				c.write(c.z())
				if want == nil {
					c.OnDelete(c.x(1))
				}
				c.OnAdd(c.z(), false)
				c.rest()
			}, want...)
		})
	}
}

// A restore of etcd has brought an object back to a state that it had before: it is not known which departures and deletions the handler has got.
func TestMissed_AnObjectHasComeBack(t *testing.T) {
	for name, tc := range map[string]struct {
		adds, ends bool // the handler gets that it is selected again; it is deleted, and the handler does not get that
		want       []Invariant
	}{
		"the addition comes":      {true, false, nil},
		"the addition is missing": {false, false, []Invariant{Complete}},
		"its deletion is missing": {true, true, []Invariant{Complete}},
	} {
		t.Run(name, func(t *testing.T) {
			inCalm(t, View{Color: "red"}, func(c *calmTest) {
				c.write(c.x(1))
				c.backedUp()
				c.OnAdd(c.x(1), true)
				c.write(c.x(2)) // the handler does not get it
				c.restored(c.later())
				c.later()
				c.rest()
				c.write(at(c.object("a/x", "x1", 5, "blue"), "5"))
				c.OnDelete(at(c.x(1), "5"))
				six := c.object("a/x", "x1", 6, "red")
				c.write(six)
				if tc.adds {
					c.OnAdd(six, false)
				}
				if tc.ends {
					c.removeX()
				}
				c.write(c.z())
				c.OnAdd(c.z(), false)
				c.rest()
			}, tc.want...)
		})
	}
}

func TestMissed_ADeletedObjectHasComeBack(t *testing.T) {
	inCalm(t, View{}, func(c *calmTest) {
		c.write(c.x(1))
		c.backedUp()
		c.OnAdd(c.x(1), true)
		c.removeX()
		c.OnDelete(c.x(1))
		c.restored(c.later())
		c.later()
		c.OnAdd(c.x(1), false)
		c.rest()
		c.removeX()
		c.OnDelete(c.x(1))
		c.write(c.z())
		c.OnAdd(c.z(), false)
		c.rest()
	})
}
