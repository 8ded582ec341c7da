package churn

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// sample is a world with two types of the name t1, one after the other.
//
//	a/x  UID x1  versions 1 (red), 2 (blue), 3 (red); deleted
//	a/x  UID x2  version 5 (red)
//	b/y  UID y1  version 4 (blue); deleted with its type
//	a/z  UID z1  version 9 (red), of the second type
type sample struct {
	*World
	begun time.Time
}

func newSample() sample {
	s := sample{newWorld("example.com"), time.Now()}
	s.defined("t1", Incarnation{UID: "first", Namespaced: true, Served: []string{"v1"}})
	s.write("a/x", "x1", 1, "red")
	s.write("a/x", "x1", 2, "blue")
	s.write("a/x", "x1", 3, "red")
	s.deleted("t1", "a/x", s.begun)
	s.write("b/y", "y1", 4, "blue")
	s.write("a/x", "x2", 5, "red")
	s.undefined("t1", s.begun)
	s.defined("t1", Incarnation{UID: "second", Namespaced: true, Served: []string{"v1"}})
	s.write("a/z", "z1", 9, "red")
	return s
}

func (s sample) write(object string, uid types.UID, version int, color string) {
	s.wrote("t1", s.object(object, uid, version, color), s.begun)
}

func (s sample) object(object string, uid types.UID, version int, color string) *unstructured.Unstructured {
	namespace, name := split(object, true)
	obj := s.content("t1", "v1", namespace, name, version, color)
	obj.SetUID(uid)
	obj.SetResourceVersion(fmt.Sprint(version))
	return obj
}

func (s sample) x(version int) *unstructured.Unstructured {
	return s.object("a/x", "x1", version, []string{"", "red", "blue", "red"}[version])
}
func (s sample) x2() *unstructured.Unstructured { return s.object("a/x", "x2", 5, "red") }
func (s sample) y() *unstructured.Unstructured  { return s.object("b/y", "y1", 4, "blue") }
func (s sample) z() *unstructured.Unstructured  { return s.object("a/z", "z1", 9, "red") }

// at returns a copy of an object with another version.
func at(obj *unstructured.Unstructured, version string) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	obj.SetResourceVersion(version)
	return obj
}

// torn returns a copy of an object with the spec of another state.
func torn(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	obj.Object["spec"] = specOf("7")
	return obj
}

// withFinalizer returns a copy of an object with a finalizer.
func withFinalizer(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	obj.SetFinalizers([]string{finalizer})
	return obj
}

func TestCheckHistory(t *testing.T) {
	s := newSample()
	all, red := View{Name: "h", Type: "t1"}, View{Name: "h", Type: "t1", Color: "red"}
	inA, merged := View{Name: "h", Type: "t1", Namespaces: []string{"a"}}, View{Name: "h", Type: "t1", Merged: true}
	setA, aThenB := &NamespaceSets{}, &NamespaceSets{}
	setA.Change("a")
	aThenB.Change("a")
	aThenB.Change("b")
	ofSetA, ofAThenB := View{Name: "h", Type: "t1", Sets: setA}, View{Name: "h", Type: "t1", Sets: aThenB}
	for _, tc := range []struct {
		name   string
		view   View
		events func(r *Recorder)
		want   []Invariant
	}{
		{"a whole life", all, func(r *Recorder) {
			r.OnAdd(s.x(1), true)
			r.OnUpdate(s.x(1), s.x(3))
			r.OnUpdate(s.x(3), s.x(3))
			r.OnAdd(s.y(), false)
			r.OnDelete(at(s.x(3), "4"))
			r.OnAdd(s.x2(), false)
			r.OnDelete(s.y())
			r.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/x", Obj: s.x2()})
			r.OnAdd(s.z(), false)
		}, nil},
		{"an object enters and leaves a selection", red, func(r *Recorder) {
			r.OnAdd(s.x(1), true)
			r.OnDelete(at(s.x(1), "2"))
			r.OnAdd(s.x(3), false)
			r.OnDelete(s.x(3))
		}, nil},
		{"an object is added twice", all, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnAdd(s.x(2), true) }, []Invariant{Unique}},
		{"another object is added without a deletion", all, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnAdd(s.x2(), true) }, []Invariant{Unique}},
		{"a deleted object is added", all, func(r *Recorder) { r.OnAdd(s.x(3), true); r.OnDelete(s.x(3)); r.OnAdd(s.x(3), false) }, []Invariant{Unique}},
		{"an object is deleted twice", all, func(r *Recorder) { r.OnAdd(s.x(3), true); r.OnDelete(s.x(3)); r.OnDelete(s.x(3)) }, []Invariant{Unique}},
		{"an object that was not added is deleted", all, func(r *Recorder) { r.OnDelete(s.x(3)) }, []Invariant{Unique}},
		{"an object that was not added is updated", all, func(r *Recorder) { r.OnUpdate(s.x(1), s.x(2)) }, []Invariant{Unique}},
		{"an update has another UID", all, func(r *Recorder) { r.OnAdd(s.x(3), true); r.OnUpdate(s.x(3), s.x2()) }, []Invariant{Unique}},
		{"no object has the UID", all, func(r *Recorder) { r.OnAdd(s.object("a/x", "none", 1, "red"), true) }, []Invariant{Atomic}},
		{"the object never had the version", all, func(r *Recorder) { r.OnAdd(at(s.x(1), "7"), true) }, []Invariant{Atomic}},
		{"the content is of another version", all, func(r *Recorder) { r.OnAdd(at(s.x(1), "3"), true) }, []Invariant{Atomic}},
		{"the color is of another version", all, func(r *Recorder) { r.OnAdd(s.object("a/x", "x1", 1, "blue"), true) }, []Invariant{Atomic}},
		{"the name is of another object", all, func(r *Recorder) { r.OnAdd(s.object("a/other", "x1", 1, "red"), true) }, []Invariant{Atomic}},
		{"parts of an object are of different versions", all, func(r *Recorder) { r.OnAdd(torn(s.x(1)), true) }, []Invariant{Atomic}},
		{"a deletion has a state before the last one", all, func(r *Recorder) { r.OnAdd(s.x(2), true); r.OnDelete(at(s.x(1), "8")) }, []Invariant{Atomic}},
		{"a deletion has an earlier version", all, func(r *Recorder) { r.OnAdd(s.x(3), true); r.OnDelete(at(s.x(3), "2")) }, []Invariant{Ordered}},
		{"an update goes back", all, func(r *Recorder) { r.OnAdd(s.x(3), true); r.OnUpdate(s.x(3), s.x(2)) }, []Invariant{Ordered}},
		{"an object returns to a selection with an earlier state", red, func(r *Recorder) {
			r.OnAdd(s.x(3), true)
			r.OnDelete(s.x(3))
			r.OnAdd(s.x(1), false)
		}, []Invariant{Ordered}},
		{"a deleted object returns to a selection", red, func(r *Recorder) {
			r.OnAdd(s.x(3), true)
			r.OnDelete(s.x(3))
			r.OnAdd(s.x(3), false)
		}, []Invariant{Ordered}},
		{"an object returns to a selection as it was before it left", red, func(r *Recorder) {
			r.OnAdd(s.x(1), true)
			r.OnDelete(s.x(1))
			r.OnAdd(s.x(1), false)
		}, []Invariant{Ordered}},
		{"a deleted object of a set is added", ofSetA, func(r *Recorder) { r.OnAdd(s.x(3), true); r.OnDelete(s.x(3)); r.OnAdd(s.x(3), false) }, []Invariant{Ordered}},
		{"an object that was deleted comes back after a move", ofAThenB, func(r *Recorder) {
			r.OnAdd(s.x(2), true)
			r.OnDelete(s.x(3))
			r.OnAdd(s.x(3), false)
			r.OnMoved(s.x(3))
			r.OnAdd(s.x(3), false)
		}, []Invariant{Ordered}},
		{"an object that exists is deleted", all, func(r *Recorder) { r.OnAdd(s.z(), true); r.OnDelete(s.z()) }, []Invariant{Justified}},
		{"an object that exists is deleted, in its version", View{Name: "h", Type: "t1", Version: "v1"}, func(r *Recorder) { r.OnAdd(s.z(), true); r.OnDelete(s.z()) }, []Invariant{Justified}},
		{"an object of a CRD without the version is deleted", View{Name: "h", Type: "t1", Version: "v1beta1"}, func(r *Recorder) { r.OnAdd(s.z(), true); r.OnDelete(s.z()) }, nil},
		{"an object of a namespace moves", inA, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnMoved(s.x(1)) }, []Invariant{Justified}},
		{"an object of a namespace that stays in the set moves", ofSetA, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnMoved(s.x(1)) }, []Invariant{Justified}},
		{"an object of a namespace that leaves the set moves, and comes back", ofAThenB, func(r *Recorder) {
			r.OnAdd(s.z(), true)
			r.OnMoved(s.z())
			r.OnAdd(s.z(), false)
		}, nil},
		{"an object of a namespace that leaves the set is deleted", ofAThenB, func(r *Recorder) { r.OnAdd(s.z(), true); r.OnDelete(s.z()) }, []Invariant{Justified}},
		{"an object of a namespace that was never in the set is added", ofSetA, func(r *Recorder) { r.OnAdd(s.y(), true) }, []Invariant{Selection}},
		{"an object of a new type is added early", all, func(r *Recorder) { r.OnAdd(s.y(), true); r.OnAdd(s.z(), true) }, []Invariant{Generations}},
		{"a deletion has the color of an earlier state", all, func(r *Recorder) { r.OnAdd(s.x(2), true); r.OnDelete(s.object("a/x", "x1", 3, "blue")) }, []Invariant{Atomic}},
		{"a deletion has a finalizer that the object never had", all, func(r *Recorder) { r.OnAdd(s.x(3), true); r.OnDelete(withFinalizer(s.x(3))) }, []Invariant{Atomic}},
		{"an object has a finalizer of another state", all, func(r *Recorder) { r.OnAdd(withFinalizer(s.x(3)), true) }, []Invariant{Atomic}},
		{"an update has the old object with another color", all, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnUpdate(s.object("a/x", "x1", 1, "blue"), s.x(2)) }, []Invariant{OldState}},
		{"an update has the old object with a finalizer", all, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnUpdate(withFinalizer(s.x(1)), s.x(2)) }, []Invariant{OldState}},
		{"parts of the old object of an update are of different versions", all, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnUpdate(torn(s.x(1)), s.x(2)) }, []Invariant{OldState}},
		{"the old object of an update has lost its content while it waited", merged, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnUpdate(torn(s.x(1)), s.x(2)) }, nil},
		{"the object of a deletion has lost its content while it waited", merged, func(r *Recorder) { r.OnAdd(s.x(3), true); r.OnDelete(torn(s.x(3))) }, nil},
		{"parts of the new object of a merged update are of different versions", merged, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnUpdate(s.x(1), torn(s.x(2))) }, []Invariant{Atomic}},
		{"an update has another old version", all, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnUpdate(s.x(2), s.x(3)) }, []Invariant{OldState}},
		{"an initial addition follows another one", all, func(r *Recorder) { r.OnAdd(s.x(1), false); r.OnAdd(s.y(), true) }, []Invariant{InitialList}},
		{"an object that is not selected is added", red, func(r *Recorder) { r.OnAdd(s.x(2), true) }, []Invariant{Selection}},
		{"an object leaves a selection by an update", red, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnUpdate(s.x(1), s.x(2)) }, []Invariant{Selection}},
		{"an object of another namespace is added", inA, func(r *Recorder) { r.OnAdd(s.y(), true) }, []Invariant{Selection}},
		{"a removed handler is called", all, func(r *Recorder) { r.Removed(1); r.OnAdd(s.x(1), true); r.OnUpdate(s.x(1), s.x(2)) }, []Invariant{CalledAfterRemoval}},
		{"a removed handler finishes its call", all, func(r *Recorder) { r.Removed(1); r.OnAdd(s.x(1), true) }, nil},
		{"a removed handler begins a call late", all, func(r *Recorder) {
			r.Removed(1)
			r.until = r.until.Add(-begins)
			r.OnAdd(s.x(1), true)
		}, []Invariant{CalledAfterRemoval}},
		{"a handler is called after its last call", all, func(r *Recorder) { r.Removed(1); r.Removed(0); r.OnAdd(s.x(1), true) }, []Invariant{CalledAfterRemoval}},
		{"an event is not an object", all, func(r *Recorder) { r.OnAdd("text", true) }, []Invariant{Atomic}},
		{"the transform was not called", View{Name: "h", Type: "t1", Form: Transformed}, func(r *Recorder) { r.OnAdd(s.x(1), true) }, []Invariant{Atomic}},
		{"an object has more than metadata", View{Name: "h", Type: "t1", Form: Metadata}, func(r *Recorder) { r.OnAdd(s.x(1), true) }, []Invariant{Atomic}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &Recorder{View: tc.view}
			tc.events(r)
			var got []Invariant
			for _, v := range r.Check(s.World) {
				if !slices.Contains(got, v.Invariant) {
					got = append(got, v.Invariant)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("violations %v, want %v\n%v", got, tc.want, Result{Violations: r.Check(s.World)})
			}
		})
	}
}

// A deletion that is observed before its cause began was invented.
func TestCheckHistory_CausesBeginBefore(t *testing.T) {
	s := newSample()
	r := &Recorder{View: View{Type: "t1"}}
	r.OnAdd(s.z(), true)
	r.OnDelete(s.z())
	s.deleted("t1", "a/z", time.Now().Add(time.Hour))
	if found := r.Check(s.World); len(found) != 1 || found[0].Invariant != Justified {
		t.Errorf("got %v", found)
	}
}

// After a restore of etcd, events may contradict what was observed before, until the subject has noticed the restore.
func TestCheckHistory_RestoresEndAtRest(t *testing.T) {
	for _, tc := range []struct {
		name string
		rest func(s sample) // after the restore
		want []Invariant
	}{
		{"not at rest", func(sample) {}, nil},
		{"at rest", func(s sample) { s.rested(time.Now(), neverLists) }, []Invariant{Ordered, Justified}},
		{"at rest when the CRD came, a moment before", func(s sample) {
			s.rested(time.Now(), neverLists)
			s.show("second", time.Now(), false)
		}, []Invariant{Ordered}},
		{"at rest when the CRD came, some time before", func(s sample) {
			s.rested(time.Now(), neverLists)
			s.show("second", time.Now().Add(-noticed), false)
		}, []Invariant{Ordered, Justified}},
		{"at rest when another CRD came", func(s sample) {
			s.rested(time.Now(), neverLists)
			s.show("third", time.Now(), false)
		}, []Invariant{Ordered, Justified}},
		{"at rest while a namespace is forbidden", func(s sample) {
			s.forbid("t1", permission{"b", "list"}, true)
			s.rested(time.Now(), neverLists)
		}, nil},
		{"at rest while a version is not served", func(s sample) {
			s.serves("t1", []string{"v1"})
			s.rested(time.Now(), neverLists)
		}, nil},
		{"at rest without the type, and then with it", func(s sample) {
			s.undefined("t1", time.Now())
			s.rested(time.Now(), neverLists)
			s.defined("t1", Incarnation{UID: "fourth", Namespaced: true, Served: allVersions})
			s.rested(time.Now(), neverLists)
		}, []Invariant{Ordered}}, // all objects were deleted with the type
		{"at rest, and restored again", func(s sample) {
			s.rested(time.Now(), neverLists)
			s.undefined("t1", time.Now())
			s.restored(time.Now())
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSample()
			s.serves("t1", allVersions)
			s.backedUp()
			s.undefined("t1", time.Now())
			s.defined("t1", Incarnation{UID: "third", Namespaced: true, Served: allVersions})
			s.restored(time.Now())
			s.write("a/w", "w1", 12, "red")
			s.write("b/w", "w2", 13, "red")
			w1, w2 := s.object("a/w", "w1", 12, "red"), s.object("b/w", "w2", 13, "red")
			r := &Recorder{View: View{Name: "h", Type: "t1"}}
			r.OnAdd(w1, true)
			r.OnAdd(w2, true)
			s.deleted("t1", "b/w", time.Now())
			tc.rest(s)
			r.OnDelete(at(w2, "11")) // an earlier version
			r.OnDelete(w1)
			var got []Invariant
			for _, v := range r.Check(s.World) {
				got = append(got, v.Invariant)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("violations %v, want %v\n%v", got, tc.want, Result{Violations: r.Check(s.World)})
			}
		})
	}
}

// A subject that could not read CRDs learns late that a type has been replaced. Until then, it can't tell the objects of the two CRDs apart.
func TestCheckHistory_CRDsThatAreLearnedLate(t *testing.T) {
	inBoth := &NamespaceSets{}
	inBoth.Change("a", "b")
	all, set := View{Name: "h", Type: "t1"}, View{Name: "h", Type: "t1", Sets: inBoth}
	inV2 := View{Name: "h", Type: "t1", Sets: inBoth, Version: "v2"}
	deletedOnce := func(s sample, r *Recorder) {
		r.OnAdd(s.z(), false)
		r.OnDelete(s.z())
		r.OnAdd(s.z(), false)
	}
	mixed := func(s sample, r *Recorder) {
		r.OnAdd(s.y(), true)
		r.OnAdd(s.z(), false)
		r.OnDelete(s.y())
	}
	reversed := func(s sample, r *Recorder) {
		r.OnAdd(s.z(), true)
		r.OnAdd(s.y(), true)
		r.OnDelete(s.y())
	}
	hour := func(s sample, hours int) time.Time { return s.begun.Add(time.Duration(hours) * time.Hour) }
	hidden := func(s sample) { s.hide(hour(s, -1)) }
	created := func(s sample, at time.Time) { s.types["t1"].incarnations[1].created = at }
	behind := func(s sample, until time.Time) {
		s.alternates(true, hour(s, -2))
		s.recordLag(time.Second, hour(s, -2))
		s.recordLag(0, until)
	}
	cameBack := func(s sample, at time.Time) {
		created(s, hour(s, -2))
		s.types["t1"].restores = []restoration{{begun: hour(s, -1), ended: hour(s, -1), returned: "second", shown: at}}
	}
	for _, tc := range []struct {
		name   string
		view   View
		events func(s sample, r *Recorder)
		world  func(s sample) // what happened to the CRDs
		want   []Invariant
	}{
		{"it is deleted and added again, without the CRD", all, deletedOnce, hidden, nil},
		{"it is deleted and added again when the CRD comes late", all, deletedOnce, func(s sample) { hidden(s); s.show("second", hour(s, 1), true) }, nil},
		{"it is deleted though CRDs could be read", all, deletedOnce, func(sample) {}, []Invariant{Justified, Unique}},
		{"it is deleted before CRDs could not be read", all, deletedOnce, func(s sample) { s.hide(hour(s, 1)) }, []Invariant{Justified, Unique}},
		{"the CRD came at once", all, deletedOnce, func(s sample) { hidden(s); created(s, s.begun); s.show("second", s.begun.Add(prompt/2), true) }, []Invariant{Justified, Unique}},
		{"the CRD came late, and before the object", all, deletedOnce, func(s sample) { hidden(s); s.show("second", s.begun.Add(-noticed), true) }, []Invariant{Justified, Unique}},
		{"the subject was at rest with the CRD, which came some time before", all, deletedOnce, func(s sample) {
			hidden(s)
			s.show("second", s.begun.Add(time.Microsecond-noticed), true) // the object existed a moment before the end of that time
			s.rested(s.begun, neverLists)
		}, []Invariant{Justified, Unique}},
		{"the subject was at rest when the CRD came, a moment before", all, deletedOnce, func(s sample) {
			hidden(s)
			s.rested(s.begun, neverLists)
			s.show("second", time.Now().Add(-noticed/2), true)
			s.rested(s.begun, neverLists)
		}, nil},
		{"the subject was at rest before the CRD came", all, deletedOnce, func(s sample) { hidden(s); s.rested(time.Now(), neverLists); s.show("second", hour(s, 1), true) }, nil},
		{"CRDs were listed again before it came", all, deletedOnce, func(s sample) {
			hidden(s)
			s.show("other", s.begun.Add(-time.Minute), false)
			s.show("second", hour(s, 1), false)
		}, []Invariant{Justified, Unique}},
		{"CRDs are hidden after it came late", all, deletedOnce, func(s sample) { s.show("second", s.begun.Add(-noticed/2), false); s.hide(s.begun.Add(-noticed / 4)) }, []Invariant{Justified, Unique}},
		{"CRDs were listed again after it came", all, deletedOnce, func(s sample) { hidden(s); s.show("second", hour(s, 1), false) }, nil},
		{"CRDs are hidden after they were listed again", all, deletedOnce, func(s sample) {
			s.hide(hour(s, -2))
			s.show("other", hour(s, -1), false)
			s.hide(s.begun)
		}, nil},
		{"the type is on the aggregated server", all, deletedOnce, func(s sample) { hidden(s); s.types["t1"].incarnations[1].aggregated = true }, []Invariant{Justified, Unique}},
		{"a restore has brought back the CRD, which came a moment ago", all, deletedOnce, func(s sample) { cameBack(s, s.begun) }, nil},
		{"a restore has brought back the CRD, which came some time ago", all, deletedOnce, func(s sample) { cameBack(s, s.begun.Add(-noticed)) }, []Invariant{Justified, Unique}},
		{"it is deleted and added again while a server is behind", all, deletedOnce, func(s sample) { behind(s, hour(s, 1)) }, nil},
		{"a server is behind, and the CRD comes late", all, deletedOnce, func(s sample) { behind(s, hour(s, 1)); s.show("second", s.begun, false) }, nil},
		{"a server is behind, and the CRD came some time before", all, deletedOnce, func(s sample) { behind(s, hour(s, 1)); s.show("second", s.begun.Add(-noticed), false) }, []Invariant{Justified, Unique}},
		{"a server is behind, and the CRD should have come", all, deletedOnce, func(s sample) { behind(s, hour(s, 1)); created(s, s.begun.Add(-learnedWithin-time.Second)) }, []Invariant{Justified, Unique}},
		{"a server was behind until the CRD was created", all, deletedOnce, func(s sample) { behind(s, s.types["t1"].incarnations[1].created.Add(-time.Second)) }, nil},
		{"another run has made a server lag", all, deletedOnce, func(s sample) { behind(s, hour(s, 1)); s.second = nil }, []Invariant{Justified, Unique}},
		{"a server was behind before", all, deletedOnce, func(s sample) { behind(s, hour(s, -1)) }, []Invariant{Justified, Unique}},
		{"it is deleted twice", all, func(s sample, r *Recorder) { deletedOnce(s, r); r.OnDelete(s.z()); r.OnAdd(s.z(), false) }, hidden, []Invariant{Justified, Unique}},
		{"it is added twice after a restore", all, func(s sample, r *Recorder) { deletedOnce(s, r); r.OnAdd(s.z(), false) }, func(s sample) { cameBack(s, s.begun) }, []Invariant{Unique, Unique}},
		{"it is added twice", all, func(s sample, r *Recorder) { deletedOnce(s, r); r.OnAdd(s.z(), false) }, hidden, []Invariant{Unique, Unique}},
		{"an object of the first CRD is deleted", View{Name: "h", Type: "t2"}, func(s sample, r *Recorder) {
			s.defined("t2", Incarnation{UID: "only", Namespaced: true, Served: []string{"v1"}})
			s.wrote("t2", s.x2(), s.begun)
			r.OnAdd(s.x2(), true)
			r.OnDelete(s.x2())
		}, hidden, []Invariant{Justified}},
		{"namespaces have objects of two CRDs", set, mixed, hidden, nil},
		{"namespaces have objects of two CRDs, the later one first", set, reversed, hidden, nil},
		{"namespaces have objects of two CRDs while a server is behind", set, mixed, func(s sample) { behind(s, hour(s, 1)); s.show("second", s.begun.Add(-noticed-time.Second), false) }, nil},
		{"namespaces have objects of two CRDs for longer than a server is behind", set, mixed, func(s sample) {
			behind(s, hour(s, 1))
			s.show("second", s.begun.Add(-noticed-2*time.Second), false)
		}, []Invariant{Generations}},
		{"namespaces have objects of two CRDs, and no server is behind", set, mixed, func(s sample) { s.show("second", s.begun.Add(-noticed-time.Second), false) }, []Invariant{Generations}},
		{"namespaces have objects of two CRDs, the later one first, though the CRD has come", set, reversed, func(s sample) { s.show("second", s.begun.Add(-noticed), false) }, []Invariant{Generations}},
		{"namespaces have objects of two CRDs until the CRD comes", set, mixed, func(s sample) { hidden(s); s.show("second", hour(s, 1), true) }, nil},
		{"namespaces have objects of two CRDs after the CRD came", set, mixed, func(s sample) { hidden(s); s.show("second", s.begun.Add(-noticed), true) }, []Invariant{Generations}},
		{"namespaces have objects of two CRDs, and a restore has brought back one", set, mixed, func(s sample) { cameBack(s, s.begun) }, nil},
		{"namespaces have objects of two CRDs, and a restore has brought back one some time ago", set, mixed, func(s sample) { cameBack(s, s.begun.Add(-noticed)) }, []Invariant{Generations}},
		{"one list has objects of two CRDs, and a restore has brought back one", all, mixed, func(s sample) { cameBack(s, s.begun) }, []Invariant{Generations}},
		{"namespaces have objects of two CRDs before the CRD comes", set, mixed, func(sample) {}, nil},
		{"namespaces have objects of two CRDs when the CRD has just come", set, mixed, func(s sample) { s.show("second", s.begun, false) }, nil},
		{"namespaces have objects of two CRDs though the CRD has come", set, mixed, func(s sample) { s.show("second", s.begun.Add(-noticed), false) }, []Invariant{Generations}},
		{"namespaces have objects of two CRDs though the CRD should have come", set, mixed, func(s sample) { created(s, s.begun.Add(-learnedWithin)) }, []Invariant{Generations}},
		{"namespaces have objects of two CRDs, and a server is behind", set, mixed, func(s sample) { behind(s, hour(s, 1)); created(s, s.begun.Add(-learnedWithin)) }, nil},
		{"namespaces have objects of two CRDs, of which the later one does not serve the version", inV2, mixed, func(s sample) { s.show("second", s.begun.Add(-noticed), false) }, nil},
		{"namespaces have objects of two CRDs for long", inV2, mixed, func(s sample) { created(s, s.begun.Add(-2*keptFor)); s.show("second", s.begun.Add(-keptFor), false) }, []Invariant{Generations}},
		{"one list has objects of two CRDs, of which the later one does not serve the version", View{Name: "h", Type: "t1", Version: "v2"}, mixed, func(s sample) { s.show("second", s.begun.Add(-noticed), false) }, []Invariant{Generations}},
		{"it is deleted and added again, and then deleted by another client", all, func(s sample, r *Recorder) {
			s.deleted("t1", "a/z", s.begun)
			deletedOnce(s, r)
			r.OnDelete(s.z())
		}, hidden, nil},
		{"one list has objects of two CRDs", all, mixed, hidden, []Invariant{Generations}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSample()
			created(s, s.begun.Add(-2*noticed))
			tc.world(s)
			r := &Recorder{View: tc.view}
			tc.events(s, r)
			var got []Invariant
			for _, v := range r.Check(s.World) {
				got = append(got, v.Invariant)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("violations %v, want %v\n%v", got, tc.want, Result{Violations: r.Check(s.World)})
			}
		})
	}
}

// An object with a finalizer gets a deletionTimestamp, and stays.
func TestCheckHistory_TerminatingObjects(t *testing.T) {
	s := newSample()
	terminating := at(s.z(), "11")
	now := metav1.Now()
	terminating.SetDeletionTimestamp(&now)
	s.wrote("t1", terminating, time.Now())
	for _, tc := range []struct {
		name   string
		events func(r *Recorder)
		want   []Invariant
	}{
		{"it is updated", func(r *Recorder) { r.OnAdd(s.z(), true); r.OnUpdate(s.z(), terminating) }, nil},
		{"it is deleted early", func(r *Recorder) { r.OnAdd(s.z(), true); r.OnDelete(terminating) }, []Invariant{Justified}},
		{"the deletionTimestamp is missing", func(r *Recorder) { r.OnAdd(at(s.z(), "11"), true) }, []Invariant{Atomic}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &Recorder{View: View{Name: "h", Type: "t1"}}
			tc.events(r)
			var got []Invariant
			for _, v := range r.Check(s.World) {
				got = append(got, v.Invariant)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("violations %v, want %v\n%v", got, tc.want, Result{Violations: r.Check(s.World)})
			}
		})
	}
	if found := Compare("it", s.Want(View{Type: "t1"}), map[string]Observation{"a/z": observe(at(s.z(), "11"))}); len(found) != 1 {
		t.Errorf("without a deletionTimestamp: %v", found)
	}
}

// The objects of the other server are other objects, and those of the first one come back.
func TestCheckHistory_MovedTypes(t *testing.T) {
	sets := &NamespaceSets{}
	sets.Change("a", "b")
	for _, tc := range []struct {
		name   string
		events func(s sample, r *Recorder, there *unstructured.Unstructured)
		want   []Invariant
	}{
		{"two namespaces of a set are on two servers", func(s sample, r *Recorder, there *unstructured.Unstructured) {
			r.View.Sets = sets
			r.OnAdd(there, true)
			s.move(time.Now())
			s.write("b/w", "w1", 12, "red")
			r.OnAdd(s.object("b/w", "w1", 12, "red"), false)
		}, nil},
		{"there and back", func(s sample, r *Recorder, there *unstructured.Unstructured) {
			r.OnAdd(s.z(), true)
			r.OnDelete(s.z())
			r.OnAdd(there, false)
			s.move(time.Now())
			r.OnDelete(there)
			r.OnAdd(s.z(), false)
		}, nil},
		{"an object becomes that of the other server", func(s sample, r *Recorder, there *unstructured.Unstructured) {
			r.OnAdd(s.z(), true)
			r.OnUpdate(s.z(), there)
		}, []Invariant{Unique}},
		{"an object of the other server is added early", func(s sample, r *Recorder, there *unstructured.Unstructured) {
			r.OnAdd(there, true)
			s.move(time.Now())
			r.OnAdd(at(s.z(), "9"), false)
		}, []Invariant{Unique, Generations}},
		{"an object of the other server is deleted while it serves", func(_ sample, r *Recorder, there *unstructured.Unstructured) {
			r.OnAdd(there, true)
			r.OnDelete(there)
		}, []Invariant{Justified}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSample()
			s.definedOnOther("t1", Incarnation{UID: "other", Namespaced: true, Served: allVersions})
			s.move(time.Now())
			there := s.object("a/z", "z9", 3, "red")
			s.wrote("t1", there, time.Now())
			r := &Recorder{View: View{Name: "h", Type: "t1"}}
			tc.events(s, r, there)
			var got []Invariant
			for _, v := range r.Check(s.World) {
				got = append(got, v.Invariant)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("violations %v, want %v\n%v", got, tc.want, Result{Violations: r.Check(s.World)})
			}
		})
	}
}

func TestWorld_MoveChangesWhatIsServed(t *testing.T) {
	s := newSample()
	if absent := s.absentOnOther(); len(absent) != 1 || absent["t1"].UID != "second" {
		t.Fatalf("the other server lacks %v", absent)
	}
	s.definedOnOther("t1", Incarnation{UID: "other", Namespaced: false, Served: allVersions})
	for moved, want := range []int{1, 0, 1} { // objects
		if i, n := s.Incarnation("t1"); n < 0 || (i.UID == "other") != s.Moved() || s.Moved() != (moved == 1) {
			t.Errorf("after %d moves, the type is %v", moved, i)
		}
		if got := s.Want(View{Type: "t1"}); len(got) != want {
			t.Errorf("after %d moves, %v", moved, got)
		}
		s.setDown(true)
		s.move(time.Now())
		if s.Down() {
			t.Error("the server is down after a move")
		}
	}
}

func TestWorld_NamespacesAreSelected(t *testing.T) {
	w := newWorld("churn1-2.example.com")
	if name := w.namespace("d1"); w.accepts(name) != true || w.HasNamespaces() {
		t.Errorf("without Namespace objects, %s accepts nothing", name)
	}
	w.namespaces = map[string]namespaceTruth{}
	d1, sets := w.namespace("d1"), w.SelectedNamespaces("red")
	for _, tc := range []struct {
		truth           *namespaceTruth
		accepts, chosen bool
	}{
		{nil, false, false},
		{&namespaceTruth{color: "red"}, true, true},
		{&namespaceTruth{color: "blue"}, true, false},
		{&namespaceTruth{color: "red", terminating: true}, false, true},
	} {
		w.changeNamespaces(func(namespaces map[string]namespaceTruth) {
			delete(namespaces, d1)
			if tc.truth != nil {
				namespaces[d1] = *tc.truth
			}
		})
		if w.accepts(d1) != tc.accepts || slices.Contains(sets.Current(), d1) != tc.chosen {
			t.Errorf("%+v: %s accepts objects: %v; selected are %v", tc.truth, d1, w.accepts(d1), sets.Current())
		}
	}
	if !w.accepts("a") {
		t.Error("a accepts no objects")
	}
}

func TestTransform_AcceptsItsResult(t *testing.T) {
	s := newSample()
	for range 2 {
		obj, err := Transform(s.x(1))
		if err != nil {
			t.Fatal(err)
		}
		if obj, err = Transform(obj); err != nil || Observe(obj, Transformed).Problem != "" {
			t.Errorf("%v, %v", Observe(obj, Transformed), err)
		}
	}
}

func TestCompare_ReportsEachDifference(t *testing.T) {
	s := newSample()
	want := s.Want(View{Type: "t1"})
	if len(want) != 1 || len(Compare("it", want, want)) > 0 {
		t.Fatalf("want %v", want)
	}
	for name, has := range map[string]map[string]Observation{
		"missing": {},
		"more":    {"a/z": observe(s.z()), "a/x": observe(s.x(1))},
		"version": {"a/z": observe(at(s.z(), "8"))},
		"uid":     {"a/z": observe(s.object("a/z", "z0", 9, "red"))},
		"content": {"a/z": observe(at(s.object("a/z", "z1", 8, "red"), "9"))},
		"color":   {"a/z": observe(s.object("a/z", "z1", 9, "blue"))},
		"held":    {"a/z": observe(withFinalizer(s.z()))},
		"problem": {"a/z": func() Observation { o := observe(s.z()); o.Problem = "broken"; return o }()},
	} {
		if found := Compare("it", want, has); len(found) != 1 || found[0].Invariant != Equal {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestWant_IsLimitedToTheView(t *testing.T) {
	s := newSample()
	s.write("b/z", "z2", 10, "blue")
	for name, view := range map[string]View{
		"a/z": {Type: "t1", Color: "red"},
		"b/z": {Type: "t1", Namespaces: []string{"b"}},
	} {
		if want := s.Want(view); len(want) != 1 || want[name].Key() != name {
			t.Errorf("%v: %v", view, want)
		}
	}
	if want := s.Want(View{Type: "t1", Namespaces: []string{}}); len(want) > 0 {
		t.Errorf("without namespaces: %v", want)
	}
}

func TestCheckKnown_ReportsStatesThatNeverExisted(t *testing.T) {
	s := newSample()
	view := View{Name: "l", Type: "t1"}
	if found := CheckKnown(s.World, view, map[string]Observation{"a/x": observe(s.x(2)), "a/z": observe(s.z())}); len(found) > 0 {
		t.Errorf("got %v", found)
	}
	for _, never := range []*unstructured.Unstructured{at(s.x(2), "3"), withFinalizer(s.x(2))} {
		if found := CheckKnown(s.World, view, map[string]Observation{"a/x": observe(never)}); len(found) != 1 {
			t.Errorf("got %v", found)
		}
	}
}

func TestFaults_AreOfAllKinds(t *testing.T) {
	f := NewFaults(nil, "example.com", func(string) faultproxy.Match { return faultproxy.Any() })
	for kind := range FaultKinds() {
		match, fault, err := f.fault(NewOp(Fault, []string{"f1", "t1"}, "kind", kind, "times", "1", "share", "0.5"))
		if err != nil || match == nil || fault == nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, _, err := f.fault(NewOp(Fault, []string{"f1", "t1"}, "kind", "flood")); err == nil {
		t.Error("an unknown fault is no error")
	}
}

func neverLists(string) int { return 0 }
