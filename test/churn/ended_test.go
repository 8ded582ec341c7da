package churn

import (
	"slices"
	"testing"
	"time"
)

// A version that a CRD did not serve at first excuses a deletion only until the subject is at rest with the CRD.
func TestCheckHistory_VersionsThatAreServedLater(t *testing.T) {
	for _, tc := range []struct {
		name    string
		version string
		rest    func(s sample) // before the addition
		want    int
	}{
		{"the subject was not at rest with the CRD", "v1beta1", func(sample) {}, 0},
		{"the subject was at rest with the CRD, which had just come", "v1beta1", func(s sample) {
			s.show("second", time.Now(), false)
			s.rested(s.begun, neverLists)
		}, 0},
		{"the subject was at rest with the CRD", "v1beta1", func(s sample) {
			s.show("second", s.begun.Add(-noticed), false)
			s.rested(s.begun, neverLists)
		}, 1},
		{"the CRD has always served the version", "v1", func(sample) {}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSample()
			tc.rest(s)
			r := &Recorder{View: View{Type: "t1", Version: tc.version}}
			r.OnAdd(s.z(), true)
			r.OnDelete(s.z())
			if found := r.Check(s.World); len(found) != tc.want || tc.want > 0 && found[0].Invariant != Justified {
				t.Errorf("got %v", found)
			}
		})
	}
}

func TestCheckHistory_ObjectsThatStayWhenTheirTypeEnds(t *testing.T) {
	whole := func(s sample) { s.undefined("t1", time.Now()) }
	for _, tc := range []struct {
		name string
		view View
		ends func(s sample)
		want []Invariant
	}{
		{"the type ends", View{Keeps: true}, whole, []Invariant{Kept}},
		{"the type ends, and nothing must stay", View{}, whole, nil},
		{"the object is deleted before the type ends", View{Keeps: true}, func(s sample) { s.deleted("t1", "a/z", time.Now()); whole(s) }, nil},
		{"a watch sends the deletion", View{Keeps: true}, func(s sample) { whole(s); s.gotDeletion("t1s", "z1") }, nil},
		{"a watch has sent another deletion", View{Keeps: true}, func(s sample) { s.gotDeletion("t1s", "z1"); whole(s); s.gotDeletion("t1s", "y1") }, []Invariant{Kept}},
		{"a list shows it", View{Keeps: true}, func(s sample) { whole(s); s.gotList("t1s") }, nil},
		{"a list was sent before", View{Keeps: true}, func(s sample) { s.gotList("t1s"); whole(s) }, []Invariant{Kept}},
		{"another CRD exists", View{Keeps: true}, func(s sample) { whole(s); s.defined("t1", Incarnation{UID: "third", created: time.Now()}) }, nil},
		{"another CRD will exist", View{Keeps: true}, func(s sample) {
			whole(s)
			s.defined("t1", Incarnation{UID: "third", created: time.Now().Add(time.Hour)})
		}, []Invariant{Kept}},
		{"the type moves", View{Keeps: true}, func(s sample) { s.move(time.Now()) }, nil},
		{"the object leaves the selection before", View{Keeps: true, Color: "red"}, func(s sample) { s.write("a/z", "z1", 10, "blue"); whole(s) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSample()
			tc.view.Type = "t1"
			r := &Recorder{View: tc.view}
			r.OnAdd(s.z(), true)
			tc.ends(s)
			r.OnDelete(s.z())
			var got []Invariant
			for _, v := range r.Check(s.World) {
				got = append(got, v.Invariant)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("violations %v, want %v", r.Check(s.World), tc.want)
			}
		})
	}
}
