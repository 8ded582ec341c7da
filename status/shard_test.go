package status_test

import (
	"testing"

	"github.com/gvrkit/gvrkit/status"
)

func TestShard_Text(t *testing.T) {
	for want, shard := range map[string]status.Shard{
		"no slots":                            {},
		"slots 0-63":                          {Held: "0-63", Slots: 64},
		"a: slots 0-62; is loading 63":        {Member: "a", Held: "0-62", Slots: 63, Loading: "63", Waiting: 1},
		"a: no slots; waits for 3,5; Joining": {Member: "a", Pending: "3,5", Awaited: 2, Reason: "Joining"},
		"a: no slots; Joining; list leases in namespace ns: no": {Member: "a", Reason: "Joining", Err: "list leases in namespace ns: no"},
		"a: slots 0; waits for 3, of b, c; 7 objects have moved to other processes": {
			Member: "a", Held: "0", Slots: 1, Pending: "3", Awaited: 1, Owners: []string{"b", "c"}, Moved: 7,
		},
		"a: slots 0; is letting go 1-3": {Member: "a", Held: "0", Slots: 1, LettingGo: "1-3"},
		"a: slots 0; is letting go 1-3, when these have: widgets, queue; 7 objects have moved to other processes": {
			Member: "a", Held: "0", Slots: 1, LettingGo: "1-3", WaitsFor: []string{"widgets", "queue"}, Moved: 7,
		},
		"slots 0; the server sends all objects, and the informer selects (ShardedByClient)": {Held: "0", Slots: 1, ByClient: true},
	} {
		if got := shard.Text(); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
	}
}
