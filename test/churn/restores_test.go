package churn

import (
	"testing"
	"time"
)

func TestWorld_RewoundSinceTheSubjectWasAtRest(t *testing.T) {
	later := func(s sample) time.Time { return s.types["t1"].changed.Add(time.Second) }
	for name, tc := range map[string]struct {
		change         func(s sample)
		must, possible bool
	}{
		"nothing happens":    {func(sample) {}, false, false},
		"etcd is restored":   {func(s sample) { s.restored(later(s)) }, true, true},
		"it was before that": {func(s sample) { s.restored(s.types["t1"].changed) }, false, true},
		"objects change":     {func(s sample) { s.write("a/z", "z1", 10, "blue"); s.restored(later(s)) }, true, true},
		"the type has ended": {func(s sample) { s.undefined("t1", time.Now()); s.restored(later(s)) }, false, true},
		"another CRD exists": {func(s sample) {
			s.undefined("t1", time.Now())
			s.defined("t1", Incarnation{UID: "third", Served: []string{"v1"}})
			s.restored(later(s))
		}, false, true},
		"a CRD came later": {func(s sample) {
			s.restored(later(s))
			s.undefined("t1", later(s))
			s.defined("t1", Incarnation{UID: "third", Served: []string{"v1"}})
		}, false, true},
		"versions change":           {func(s sample) { s.serves("t1", []string{"v1beta1"}); s.restored(later(s)) }, false, true},
		"versions change after it":  {func(s sample) { s.restored(later(s)); s.serves("t1", []string{"v1beta1"}) }, false, true},
		"the CRD is being deleted":  {func(s sample) { s.restored(later(s)); s.terminating("t1") }, false, true},
		"the types move":            {func(s sample) { s.move(later(s)); s.move(later(s)) }, false, true},
		"the types move as well":    {func(s sample) { s.restored(later(s)); s.move(later(s)); s.move(later(s)) }, false, true},
		"the subject rests between": {func(s sample) { s.restored(later(s)); s.rested(later(s), neverLists) }, true, true},
	} {
		s := newSample()
		s.backedUp()
		since := s.types["t1"].changed
		tc.change(s)
		if must, possible := s.Rewound("t1", since); must != tc.must || possible != tc.possible {
			t.Errorf("%s: %v, %v, want %v, %v", name, must, possible, tc.must, tc.possible)
		}
		if must, possible := s.Rewound("t2", since); must || possible {
			t.Errorf("%s: a type that never existed: %v, %v", name, must, possible)
		}
	}
}

// A subject can notice a restore if it was at rest with the last versions since the backup, and lists are allowed.
func TestWorld_RestoresThatCanBeNoticed(t *testing.T) {
	served := []string{"v1", "v1beta1"}
	webhook := func(s sample) { s.types["t1"].incarnations[s.types["t1"].current].Webhook = true }
	list, watch := permission{"a", "list"}, permission{"a", "watch"}
	for name, tc := range map[string]struct {
		change           func(s sample)
		advance, restore bool // is possible
	}{
		"there is no backup":        {func(sample) {}, false, false},
		"versions have not grown":   {func(s sample) { s.backedUp() }, true, false},
		"versions have grown":       {func(s sample) { s.backedUp(); s.setAdvanced() }, true, true},
		"there is another backup":   {func(s sample) { s.backedUp(); s.setAdvanced(); s.backedUp() }, true, false},
		"etcd has been restored":    {func(s sample) { s.backedUp(); s.setAdvanced(); s.restored(time.Now()) }, true, false},
		"a version is not served":   {func(s sample) { s.backedUp(); s.setAdvanced(); s.serves("t1", []string{"v1"}) }, false, true},
		"the type is being deleted": {func(s sample) { s.backedUp(); s.setAdvanced(); s.terminating("t1") }, false, true},
		"watches are forbidden":     {func(s sample) { s.backedUp(); s.setAdvanced(); s.forbid("t1", watch, true) }, false, true},
		"lists are forbidden":       {func(s sample) { s.backedUp(); s.setAdvanced(); s.forbid("t1", list, true) }, false, false},
		"lists are allowed again":   {func(s sample) { s.backedUp(); s.setAdvanced(); s.forbid("t1", list, true); s.forbid("t1", list, false) }, true, true},
		"no type exists":            {func(s sample) { s.backedUp(); s.setAdvanced(); s.undefined("t1", time.Now()) }, false, true},
		"another type has ended": {func(s sample) {
			s.defined("t2", Incarnation{UID: "other", Served: []string{"v1"}})
			s.backedUp()
			s.setAdvanced()
			s.undefined("t2", time.Now())
		}, true, true},
		"the conversion fails": {func(s sample) { webhook(s); s.backedUp(); s.setConversionFails("t1", true) }, false, false},
		"the conversion works": {func(s sample) {
			webhook(s)
			s.backedUp()
			s.setConversionFails("t1", true)
			s.setConversionFails("t1", false)
		}, true, false},
		"no conversion is needed":    {func(s sample) { s.backedUp(); s.setConversionFails("t1", true) }, true, false},
		"types have never been made": {func(s sample) { s.backedUp(); s.setAdvanced(); s.forbid("t2", watch, false) }, true, true},
	} {
		s := newSample()
		s.serves("t1", served)
		tc.change(s)
		if advance, restore := s.canAdvance(), s.canRestore(); advance != tc.advance || restore != tc.restore {
			t.Errorf("%s: %v, %v, want %v, %v", name, advance, restore, tc.advance, tc.restore)
		}
	}
}
