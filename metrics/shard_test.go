package metrics_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

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

// shrinking is a shard that loses all slots.
type shrinking struct {
	sharding.Shard // nil

	mu      sync.Mutex
	view    sharding.View
	changed chan struct{}
}

func (s *shrinking) View() sharding.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

func (s *shrinking) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *shrinking) Owns(uid types.UID) bool          { return s.View().Slots.Has(sharding.SlotOf(uid)) }
func (s *shrinking) Selector() string                 { return s.View().Slots.Selector() }
func (s *shrinking) LostSince(uint64) sharding.Slots  { return sharding.Slots{} }
func (s *shrinking) Follow(string) *sharding.Follower { return nil }

func (s *shrinking) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = sharding.View{Generation: 2}
	close(s.changed)
	s.changed = make(chan struct{})
}

// One of two informers with a shard ends, and then the other one, while one without a shard continues.
func TestCollector_MovedObjectsDoNotDecrease(t *testing.T) {
	inBubble(t, func(in bubble) {
		whole, err := sharding.Static(0, 1)
		if err != nil {
			in.Fatal(err)
		}
		shard := &shrinking{view: whole.View(), changed: make(chan struct{})}
		for i := range 6 {
			in.create(string(rune('a' + i)))
		}
		in.acquire(widgets)
		leases := []*dynamicinformer.Lease{in.acquire(widgets, dynamicinformer.WithSeparateInformer(), dynamicinformer.WithShard(shard))}
		leases = append(leases, in.acquire(widgets, dynamicinformer.WithSeparateInformer(), dynamicinformer.WithShard(shard)))
		<-time.After(time.Second)
		shard.lose()
		<-time.After(time.Second)
		moved := map[string]float64{ofWidgets("informer_shard_moved_objects_total"): 12}
		checkSeries(in.T, gather(in.T, in.collector), moved)
		for _, l := range leases {
			l.Release()
			<-l.Done()
			checkSeries(in.T, gather(in.T, in.collector), moved)
		}
	})
}
