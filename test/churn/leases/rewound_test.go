package leases

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/churn"
)

func TestRewound_TheStatusCountsRestores(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now    uint64
		must, possible bool
		want           string // a part of the text; empty: it is right
	}{
		"nothing happened":         {0, 0, false, false, ""},
		"it was restored":          {0, 1, true, true, ""},
		"it was restored again":    {1, 3, true, true, ""},
		"it may have been":         {1, 1, false, true, ""},
		"a restore is not counted": {1, 1, true, true, "was restored, and the status counts 1 "},
		"no restore is counted":    {0, 0, true, true, "was restored, and the status counts 0 "},
		"there was no restore":     {0, 2, false, false, "was not restored, and the status counts 2 "},
	} {
		at := status.Informer{Traffic: status.Traffic{Failures: map[status.Reason]uint64{status.ReasonRewound: tc.now}}}
		got := lastRest{rewinds: tc.before}.differs(at, tc.must, tc.possible)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// An informer that is not synced may not have what a restore changes: a time at which it is as the model is no time to compare with.
func TestRewound_OnlyInformersThatAreSyncedAreAtRest(t *testing.T) {
	begun := time.Now()
	for state, want := range map[status.State]map[uint64]lastRest{
		status.StateSynced:   {7: {at: begun}},
		status.StateDegraded: {},
	} {
		s := &subject{rested: map[uint64]lastRest{}}
		c := &comparison{lease: &lease{view: churn.View{Type: "t1"}}, world: &churn.World{}, at: status.Informer{ID: 7, State: state}}
		if s.rewound(c, begun); !maps.Equal(s.rested, want) || len(c.found) > 0 {
			t.Errorf("%s: %v, want %v; violations: %v", state, s.rested, want, c.found)
		}
	}
}
