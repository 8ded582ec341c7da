package churn

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// aWhile is more than what an object, a CRD or a move must be old.
const aWhile = listed + learnedWithin

func TestWorld_MissingAreExpectedObjectsThatStay(t *testing.T) {
	set, setA := &NamespaceSets{}, &NamespaceSets{}
	set.Change("a")
	setA.Change("a")
	all := View{Type: "t1"}
	for _, tc := range []struct {
		name   string
		view   View
		before func(s sample) // the cache is asked for
		during func(s sample) // before it is synced
		after  func(s sample) // before it is compared
		has    func(s sample) map[string]Observation
		want   bool
	}{
		{name: "the cache has the object", view: all, has: func(s sample) map[string]Observation { return map[string]Observation{"a/z": observe(s.z())} }},
		{name: "the cache has a later state", view: all, during: func(s sample) { s.write("a/z", "z1", 10, "blue") }, has: func(s sample) map[string]Observation {
			return map[string]Observation{"a/z": observe(s.object("a/z", "z1", 10, "blue"))}
		}},
		{name: "the cache is empty", view: all, want: true},
		{name: "the cache has an earlier state", view: all, before: func(s sample) {
			s.write("a/z", "z1", 10, "blue")
			s.types["t1"].recorded["z1"] = time.Time{}
		}, has: func(s sample) map[string]Observation { return map[string]Observation{"a/z": observe(s.z())} }, want: true},
		{name: "the cache has an object with another UID", view: all, has: func(s sample) map[string]Observation {
			return map[string]Observation{"a/z": observe(s.object("a/z", "z0", 9, "red"))}
		}, want: true},
		{name: "the object is not selected", view: View{Type: "t1", Color: "blue"}},
		{name: "the object is selected", view: View{Type: "t1", Color: "red"}, want: true},
		{name: "the object has been written a moment ago", view: all, before: func(s sample) { s.types["t1"].recorded["z1"] = time.Now() }},
		{name: "the object is deleted meanwhile", view: all, during: func(s sample) { s.deleted("t1", "a/z", time.Now()) }},
		{name: "the object is deleted later", view: all, after: func(s sample) { s.deleted("t1", "a/z", time.Now().Add(time.Minute)) }, want: true},
		{name: "the type is deleted meanwhile", view: all, during: func(s sample) { s.undefined("t1", time.Now()) }},
		{name: "the CRD was created a moment ago", view: all, before: func(s sample) { s.types["t1"].incarnations[1].created = time.Now() }},
		{name: "the subject does not know the CRD", view: all, before: func(s sample) { s.hide(s.begun.Add(-time.Hour)) }},
		{name: "the CRD was created in the time that a server is behind", view: all, before: func(s sample) {
			s.alternates(true, s.begun)
			s.recordLag(time.Second, s.begun)
			s.types["t1"].incarnations[1].created = time.Now().Add(-learnedWithin)
		}},
		{name: "a server was behind before", view: all, before: func(s sample) {
			s.alternates(true, s.begun.Add(-time.Hour))
			s.recordLag(time.Second, s.begun.Add(-time.Hour))
			s.recordLag(0, s.begun.Add(-time.Minute))
			s.types["t1"].recorded["z1"] = time.Now().Add(-listed)
		}, want: true},
		{name: "the object was written before the time that a server is behind", view: all, before: func(s sample) {
			s.alternates(true, s.begun)
			s.recordLag(time.Second, s.begun)
		}, want: true},
		{name: "the object was written in the time that a server is behind", view: all, before: func(s sample) {
			s.alternates(true, s.begun)
			s.recordLag(time.Second, s.begun)
			s.types["t1"].recorded["z1"] = time.Now().Add(-listed)
		}},
		{name: "the object was written in the time that a server is behind to which no request goes", view: all, before: func(s sample) {
			s.recordLag(time.Second, s.begun)
			s.types["t1"].recorded["z1"] = time.Now().Add(-listed)
		}, want: true},
		{name: "etcd was restored a moment ago", view: all, before: func(s sample) { s.types["t1"].restores = []restoration{{begun: time.Now(), ended: time.Now()}} }},
		{name: "etcd was restored some time ago", view: all, before: func(s sample) {
			s.types["t1"].restores = []restoration{{begun: s.begun.Add(-aWhile), ended: s.begun}}
		}, want: true},
		{name: "etcd is restored meanwhile", view: all, before: sample.backedUp, during: func(s sample) { s.restored(time.Now()) }},
		{name: "the type moves there and back meanwhile", view: all, during: func(s sample) { s.move(time.Now()); s.move(time.Now()) }},
		{name: "the type has moved a moment ago", view: all, before: func(s sample) { s.moves = []time.Time{time.Now()} }},
		{name: "the server is down", view: all, before: func(s sample) { s.setDown(true) }},
		{name: "the type never existed", view: View{Type: "t2"}},
		{name: "a set has the namespace", view: View{Type: "t1", Sets: setA}, want: true},
		{name: "a set loses the namespace", view: View{Type: "t1", Sets: set}, during: func(sample) { set.Change("b"); set.Change("a") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := sample{newSample().World, time.Now().Add(-aWhile)}
			z := s.types["t1"].objects["z1"]
			z.States[0].At = s.begun
			clear(s.types["t1"].recorded)
			run := func(f func(sample)) {
				if f != nil {
					f(s)
				}
			}
			run(tc.before)
			e := s.Expect(tc.view)
			run(tc.during)
			has := map[string]Observation{}
			if tc.has != nil {
				has = tc.has(s)
			}
			at := time.Now()
			run(tc.after)
			if missing := s.Missing(e, at, has); (len(missing) > 0) != tc.want {
				t.Errorf("missing: %v", missing)
			}
			if missing := s.Missing(e, at, has, "a"); len(missing) > 0 {
				t.Errorf("missing in a namespace that is left out: %v", missing)
			}
		})
	}
}

func TestRecorder_FirstAdditionsOfWhatTheCacheHadAreInitial(t *testing.T) {
	s := newSample()
	cache := map[string]Observation{"a/x": observe(s.x(1))}
	for _, tc := range []struct {
		name   string
		merged bool
		events func(r *Recorder)
		want   []Invariant
	}{
		{"an initial addition", false, func(r *Recorder) { r.OnAdd(s.x(1), true) }, nil},
		{"an addition that is not initial", false, func(r *Recorder) { r.OnAdd(s.x(1), false) }, []Invariant{InitialList}},
		{"an addition that may have been merged", true, func(r *Recorder) { r.OnAdd(s.x(1), false) }, nil},
		{"an object that the cache did not have", false, func(r *Recorder) { r.OnAdd(s.x2(), false) }, nil},
		{"an object that returns", false, func(r *Recorder) { r.OnAdd(s.x(1), true); r.OnDelete(s.x(1)); r.OnAdd(s.x(3), false) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &Recorder{View: View{Type: "t1", Color: "red", Merged: tc.merged}}
			r.AddedTo(cache)
			tc.events(r)
			found := r.Check(s.World)
			if len(found) != len(tc.want) || len(found) > 0 && found[0].Invariant != tc.want[0] {
				t.Errorf("got %v, want %v", found, tc.want)
			}
		})
	}
}

func TestGot_IsForAdditions(t *testing.T) {
	events := []Event{{Kind: Added, New: Observation{UID: "one"}}, {Kind: Deleted, New: Observation{UID: "two"}}}
	for uid, want := range map[types.UID]bool{"one": true, "two": false, "three": false} {
		if Got(events, uid) != want {
			t.Errorf("%s: %v, want %v", uid, !want, want)
		}
	}
}

func TestWorld_WrittenIsTheLastObject(t *testing.T) {
	set := &NamespaceSets{}
	set.Change("b")
	for _, tc := range []struct {
		name   string
		view   View
		change func(s sample)
		want   string
	}{
		{"an object", View{Type: "t1"}, func(sample) {}, "9"},
		{"another object is written", View{Type: "t1"}, func(s sample) { s.write("b/w", "w1", 12, "blue") }, "12"},
		{"the last object is not selected", View{Type: "t1", Color: "red"}, func(s sample) { s.write("b/w", "w1", 12, "blue") }, ""},
		{"the last object is in another namespace", View{Type: "t1", Sets: set}, func(sample) {}, ""},
		{"the last object is in no namespace", View{Type: "t1", Sets: set}, func(s sample) {
			w := s.object("b/w", "w1", 12, "blue")
			w.SetNamespace("")
			s.wrote("t1", w, s.begun)
		}, "12"},
		{"the last object is deleted", View{Type: "t1"}, func(s sample) { s.deleted("t1", "a/z", time.Now()) }, ""},
		{"the type is deleted", View{Type: "t1"}, func(s sample) { s.undefined("t1", time.Now()) }, ""},
		{"the type has moved, and the subject was not at rest", View{Type: "t1"}, func(s sample) { s.moves = []time.Time{s.begun} }, ""},
		{"the type has moved, and the subject was at rest", View{Type: "t1"}, func(s sample) {
			s.moves = []time.Time{s.begun}
			s.rested(time.Now(), neverLists)
		}, "9"},
		{"the type has another scope, and the subject was not at rest", View{Type: "t1"}, func(s sample) { s.types["t1"].incarnations[0].Namespaced = false }, ""},
		{"the type has another scope, and the subject was at rest", View{Type: "t1"}, func(s sample) {
			s.types["t1"].incarnations[0].Namespaced = false
			s.rested(time.Now(), neverLists)
		}, "9"},
		{"the type never existed", View{Type: "t2"}, func(sample) {}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := sample{newSample().World, time.Now().Add(-aWhile)}
			tc.change(s)
			version, e := s.Written(tc.view)
			if version != tc.want {
				t.Errorf("version %q, want %q", version, tc.want)
			}
			if missing := s.Missing(e, time.Now(), nil); (len(missing) > 0) != (tc.want != "") {
				t.Errorf("missing: %v", missing)
			}
		})
	}
}

func TestWorld_ReplacedByAnotherType(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s sample)
		want   bool
	}{
		"nothing happens":      {func(sample) {}, false},
		"the type is deleted":  {func(s sample) { s.undefined("t1", time.Now()) }, true},
		"the types move":       {func(s sample) { s.move(time.Now()) }, true},
		"etcd is restored":     {func(s sample) { s.restored(time.Now()) }, true},
		"an object is deleted": {func(s sample) { s.deleted("t1", "a/z", time.Now()) }, false},
	} {
		s := newSample()
		s.backedUp()
		_, e := s.Written(View{Type: "t1"})
		tc.change(s)
		if s.Replaced(e) != tc.want {
			t.Errorf("%s: %v, want %v", name, !tc.want, tc.want)
		}
	}
}

func TestWorld_ExistsUntilTheEndOfTheCRD(t *testing.T) {
	for name, tc := range map[string]struct {
		crd    types.UID
		change func(s sample)
		want   bool
	}{
		"it exists":                   {"second", func(sample) {}, true},
		"it is the CRD before":        {"first", func(sample) {}, false},
		"it is deleted":               {"second", func(s sample) { s.undefined("t1", time.Now()) }, false},
		"it is being deleted":         {"second", func(s sample) { s.terminating("t1") }, false},
		"the types move":              {"second", func(s sample) { s.move(time.Now()); s.move(time.Now()) }, false},
		"the types have moved before": {"second", func(s sample) { s.move(time.Now()); s.move(time.Now()); s.rested(time.Now(), neverLists) }, true},
		"etcd is restored":            {"second", func(s sample) { s.backedUp(); s.restored(time.Now()) }, false},
	} {
		s := newSample()
		if tc.change(s); s.Exists("t1", tc.crd) != tc.want {
			t.Errorf("%s: %v, want %v", name, !tc.want, tc.want)
		}
	}
	if newSample().Exists("t2", "second") {
		t.Error("a type that never existed exists")
	}
}
