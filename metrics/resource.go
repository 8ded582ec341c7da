package metrics

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/status"
)

// names are a GVR as label values.
type names struct{ group, version, resource string }

// maxName is the maximum length of a label value. No name in Kubernetes is longer.
const maxName = 253

// namesOf returns gvr as label values, which must be valid UTF-8. Different names that no server
// serves may get equal label values.
func namesOf(gvr schema.GroupVersionResource) names {
	return names{label(gvr.Group), label(gvr.Version), label(gvr.Resource)}
}

func label(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "\uFFFD")
}

func (n names) compare(other names) int {
	if c := strings.Compare(n.group, other.group); c != 0 {
		return c
	}
	if c := strings.Compare(n.version, other.version); c != 0 {
		return c
	}
	return strings.Compare(n.resource, other.resource)
}

// resource is the sum of the statuses of all informers on a resource.
type resource struct {
	names
	counts
	state      status.State // the worst one
	reason     status.Reason
	failed     map[status.Reason]uint64 // objects
	lastEvent  time.Time
	objects    int
	cache      int64 // bytes
	slots      shardSlots
	leases     int
	handlers   int
	backlog    int // of all handlers
	backlogMax int
	lag        time.Duration
	call       time.Duration
	stale      time.Duration
}

// summarize returns the resources with informers that have not ended, sorted by name.
func summarize(statuses []status.Informer, now time.Time) []*resource {
	found := make(map[names]*resource, len(statuses))
	sorted := make([]*resource, 0, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		if s.State == status.StateStopped {
			continue
		}
		key := namesOf(s.GVR)
		r := found[key]
		if r == nil {
			r = &resource{names: key}
			found[key] = r
			sorted = append(sorted, r)
		}
		r.add(s, now)
	}
	slices.SortFunc(sorted, func(a, b *resource) int { return a.compare(b.names) })
	return sorted
}

// add adds an informer.
func (r *resource) add(s *status.Informer, now time.Time) {
	if r.state == "" || slices.Index(liveStates, s.State) > slices.Index(liveStates, r.state) {
		r.state, r.reason = s.State, s.Reason
	}
	for reason, objects := range s.Quarantine.Counts {
		r.fail(reason, objects)
	}
	own := countsOf(s)
	r.join(&own)
	if s.Traffic.LastEvent.After(r.lastEvent) {
		r.lastEvent = s.Traffic.LastEvent
	}
	r.objects += s.Objects
	r.cache += s.CacheBytes
	r.slots.add(s.Shard)
	r.leases += s.Leases
	r.stale = max(r.stale, age(s.StaleSince, now))
	r.handlers += len(s.Handlers)
	for _, h := range s.Handlers {
		r.backlog += h.Backlog
		r.backlogMax = max(r.backlogMax, h.Backlog)
		r.lag = max(r.lag, age(h.BehindSince, now))
		r.call = max(r.call, age(h.RunningSince, now))
		r.fail(h.Reason, uint64(h.FailedObjects)) //nolint:gosec // not negative
	}
}

// fail adds objects that reason concerns.
func (r *resource) fail(reason status.Reason, objects uint64) {
	if objects == 0 {
		return
	}
	if r.failed == nil {
		r.failed = map[status.Reason]uint64{}
	}
	r.failed[reason] += objects
}

// age returns the time from since to now, or 0 if since is zero.
func age(since, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since))
}

// shardSlots are the numbers of slots of the shards of informers.
type shardSlots struct {
	any           bool // there is a shard
	held, loading int
	pending       int  // those that a member of a group waits for
	byClient      bool // a server does not select
}

func (n *shardSlots) add(shard *status.Shard) {
	if shard == nil {
		return
	}
	n.any = true
	n.held += shard.Slots
	n.loading += shard.Waiting
	n.pending += shard.Awaited
	n.byClient = n.byClient || shard.ByClient
}
