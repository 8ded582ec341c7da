package follow

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
)

func is(uid types.UID) func(t *followed) { return func(t *followed) { t.selected(served(uid)) } }

func isOther(uid types.UID) func(t *followed) { return func(t *followed) { t.deselected(served(uid)) } }

func isUnknown(uid types.UID) func(t *followed) {
	return func(t *followed) { t.undecided(served(uid), discovery.ErrAmbiguous) }
}

func isGone(kind discovery.EvidenceKind, uid types.UID) func(t *followed) {
	return func(t *followed) { t.gone(discovery.Evidence{Kind: kind, CRDUID: uid}) }
}

// What is to become of the lease on the type with UID a, whatever happens while a callback runs.
func TestFollowed_Transitions(t *testing.T) {
	type steps []func(t *followed)
	goesOn := (*discovery.Evidence)(nil)
	ended := func(kind discovery.EvidenceKind, uid types.UID) *discovery.Evidence {
		return &discovery.Evidence{Kind: kind, CRDUID: uid}
	}
	for name, tc := range map[string]struct {
		steps steps
		end   *discovery.Evidence
		next  types.UID // what is started then; empty: nothing
	}{
		"nothing":                            {nil, goesOn, "a"},
		"changed":                            {steps{is("a")}, goesOn, "a"},
		"changed, UID not known":             {steps{is("")}, goesOn, "a"},
		"deleted":                            {steps{isGone(discovery.CRDDeleted, "a")}, ended(discovery.CRDDeleted, "a"), ""},
		"deleted, and told of before":        {steps{isGone(discovery.CRDDeleted, "a"), is("a")}, ended(discovery.CRDDeleted, "a"), "a"},
		"another in its place":               {steps{is("b")}, ended(discovery.CRDDeleted, "a"), "b"},
		"another, not selected":              {steps{isOther("b")}, ended(discovery.CRDDeleted, "a"), ""},
		"another, undecided":                 {steps{isUnknown("b")}, ended(discovery.CRDDeleted, "a"), ""},
		"another that goes, too":             {steps{isOther("a"), isOther(""), isGone(discovery.CRDDeleted, "b")}, ended(discovery.CRDDeleted, "a"), ""},
		"another that is not served":         {steps{is("b"), isGone(discovery.NoVersionServed, "b")}, ended(discovery.CRDDeleted, "a"), ""},
		"not listed":                         {steps{isGone(discovery.NotListed, "")}, ended(discovery.NotListed, ""), ""},
		"not listed, and back":               {steps{isGone(discovery.NotListed, ""), is("a")}, goesOn, "a"},
		"not listed, and back, not selected": {steps{isGone(discovery.NotListed, ""), isOther("a")}, ended("", ""), ""},
		"not served, and back, not selected": {steps{isGone(discovery.NoVersionServed, "a"), isOther("a")}, ended("", ""), ""},
		"deleted, and back, not selected":    {steps{isGone(discovery.CRDDeleted, "a"), isOther("a")}, ended(discovery.CRDDeleted, "a"), ""},
		"deleted, and another not listed":    {steps{isGone(discovery.CRDDeleted, "a"), is(""), isGone(discovery.NotListed, "")}, ended(discovery.CRDDeleted, "a"), ""},
		"not served, and deleted":            {steps{isGone(discovery.NoVersionServed, "a"), isGone(discovery.CRDDeleted, "a")}, ended(discovery.CRDDeleted, "a"), ""},
		"not served, and back":               {steps{isGone(discovery.NoVersionServed, "a"), is("a")}, goesOn, "a"},
		"not selected":                       {steps{isOther("a")}, ended("", ""), ""},
		"not selected, and again":            {steps{isOther("a"), is("a")}, goesOn, "a"},
		"not selected, and deleted":          {steps{isOther("a"), isGone(discovery.CRDDeleted, "a")}, ended(discovery.CRDDeleted, "a"), ""},
		"undecided":                          {steps{isUnknown("a")}, goesOn, "a"},
		"deleted, and then undecided":        {steps{isGone(discovery.CRDDeleted, "a"), isUnknown("b")}, ended(discovery.CRDDeleted, "a"), ""},
		"deleted, created, deleted, create":  {steps{isGone(discovery.CRDDeleted, "a"), is("b"), isGone(discovery.CRDDeleted, "b"), is("c")}, ended(discovery.CRDDeleted, "a"), "c"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &followed{}
			f.selected(served("a"))
			f.begins(time.Now())
			for _, step := range tc.steps {
				step(f)
			}
			switch {
			case (f.end == nil) != (tc.end == nil):
				t.Errorf("end: %+v, want %+v", f.end, tc.end)
			case f.end != nil && (f.end.Kind != tc.end.Kind || f.end.CRDUID != tc.end.CRDUID):
				t.Errorf("end: %+v, want %+v", f.end, tc.end)
			}
			next := types.UID("")
			if f.want != nil {
				next = f.want.CRDUID
			}
			if next != tc.next {
				t.Errorf("next: %q, want %q", next, tc.next)
			}
			if f.res.CRDUID != "a" {
				t.Errorf("the lease is on %q", f.res.CRDUID)
			}
		})
	}
}

// Stopped gets the state because of which the type is not selected any more.
func TestFollowed_HasTheLastKnownState(t *testing.T) {
	changed := served("")
	changed.Categories = []string{"none"}
	for name, change := range map[string]func(f *followed){
		"selected":   func(f *followed) { f.selected(changed) },
		"deselected": func(f *followed) { f.deselected(changed) },
		"undecided":  func(f *followed) { f.undecided(changed, errors.New("ambiguous")) },
	} {
		f := &followed{}
		f.selected(served("a"))
		f.begins(time.Now())
		change(f)
		if len(f.res.Categories) != 1 || f.res.CRDUID != "a" {
			t.Errorf("%s: %v, UID %q", name, f.res.Categories, f.res.CRDUID)
		}
	}
}

func TestFollowed_PausesGrowUntilItIsCalm(t *testing.T) {
	f := &followed{}
	now := time.Now()
	for i, want := range []time.Duration{0, 0, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond, 5 * time.Second, 5 * time.Second} {
		if i > 1 {
			if got := f.due().Sub(f.began); got != want {
				t.Errorf("pause before start %d = %v, want %v", i, got, want)
			}
			now = f.due()
		} else if !f.due().IsZero() {
			t.Errorf("start %d has to wait", i)
		}
		f.selected(served("a"))
		f.begins(now)
	}
	f.selected(served("a"))
	f.begins(now.Add(resetAfter))
	if !f.due().IsZero() {
		t.Error("a start after a time without starts waits")
	}
}

var ships = schema.GroupVersionResource{Group: "fleet.example.com", Version: "v1", Resource: "ships"}

func served(uid types.UID) discovery.Resource {
	return discovery.Resource{GVR: ships, GVK: ships.GroupVersion().WithKind("Ship"), Namespaced: true, CRDUID: uid}
}
