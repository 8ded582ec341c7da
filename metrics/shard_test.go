package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/sharding"
)

func TestCollector_CollectsShards(t *testing.T) {
	shard, err := sharding.Static(1, 4)
	if err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(in bubble) {
		for i := range 20 {
			in.create(string(rune('a' + i)))
		}
		in.acquire(widgets)
		<-time.After(time.Second)
		want := `# HELP gvrkit_informer_shard_moved_objects_total Number of objects that have left the cache because the shard has lost their slots.
# TYPE gvrkit_informer_shard_moved_objects_total counter
gvrkit_informer_shard_moved_objects_total{group="example.com",resource="widgets",version="v1"} 0
# HELP gvrkit_informer_shard_slots Number of slots of the informer's shard: those of which the cache has all objects, those that are loading, and those that the member of a group waits for.
# TYPE gvrkit_informer_shard_slots gauge
gvrkit_informer_shard_slots{group="example.com",resource="widgets",state="held",version="v1"} 64
gvrkit_informer_shard_slots{group="example.com",resource="widgets",state="loading",version="v1"} 0
gvrkit_informer_shard_slots{group="example.com",resource="widgets",state="pending",version="v1"} 0
# HELP gvrkit_informer_sharded_by_client 1 if the server sends objects that are not of the informer's shard, which the informer leaves out.
# TYPE gvrkit_informer_sharded_by_client gauge
gvrkit_informer_sharded_by_client{group="example.com",resource="widgets",version="v1"} 1
`
		if err := testutil.CollectAndCompare(in.collector, strings.NewReader(want), "gvrkit_informer_shard_slots", "gvrkit_informer_shard_moved_objects_total", "gvrkit_informer_sharded_by_client"); err != nil {
			in.Error(err)
		}
	}, dynamicinformer.WithShard(shard))
}
