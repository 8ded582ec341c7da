package leases

import (
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/status"
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
		got := rest{rewinds: tc.before}.differs(at, tc.must, tc.possible)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
