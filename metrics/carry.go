package metrics

import (
	"sync"

	"github.com/gvrkit/gvrkit/status"
)

// carry prevents a decrease of a resource's counters when one of its informers ends while others
// continue: it adds the last counts of the ended informer from then on. Prometheus reads a decrease as
// a restart, and would count the events of the other informers again.
type carry struct {
	mu        sync.Mutex
	resources map[names]*past
}

// past has the last counts of one resource.
type past struct {
	informers map[uint64]counts // by ID
	ended     counts            // of informers that had already ended
}

// addLocked adds the counts of ended informers to resources, which are all resources with the sums of
// statuses, and removes other resources. The caller must have held mu since before it read the
// statuses.
func (c *carry) addLocked(resources []*resource, statuses []status.Informer) {
	now := make(map[names]*past, len(resources))
	for _, r := range resources {
		now[r.names] = &past{informers: map[uint64]counts{}}
	}
	for i := range statuses {
		if p := now[namesOf(statuses[i].GVR)]; p != nil && statuses[i].State != status.StateStopped {
			p.informers[statuses[i].ID] = countsOf(&statuses[i])
		}
	}
	for _, r := range resources {
		if before := c.resources[r.names]; before != nil {
			before.pass(now[r.names])
			r.join(&now[r.names].ended)
		}
	}
	c.resources = now
}

// pass adds the counts of ended informers of p to next. If no informer of p continues, the counts
// start at zero, as after a restart.
func (p *past) pass(next *past) {
	goesOn := false
	next.ended.join(&p.ended)
	for number, last := range p.informers {
		if _, there := next.informers[number]; there {
			goesOn = true
			continue
		}
		next.ended.join(&last)
	}
	if !goesOn {
		next.ended = counts{}
	}
}

// counts are the counters of a resource.
type counts struct {
	lists, watches, bytes, events uint64
	failures                      map[status.Reason]uint64
	moved                         uint64 // objects of lost slots
}

// countsOf returns the counters of an informer. They are read-only.
func countsOf(i *status.Informer) counts {
	t := &i.Traffic
	c := counts{lists: t.Lists, watches: t.Watches, bytes: t.Bytes, events: t.Events, failures: t.Failures}
	if i.Shard != nil {
		c.moved = i.Shard.Moved
	}
	return c
}

func (c *counts) join(other *counts) {
	c.lists += other.lists
	c.watches += other.watches
	c.bytes += other.bytes
	c.events += other.events
	c.moved += other.moved
	for reason, failures := range other.failures {
		if c.failures == nil {
			c.failures = map[status.Reason]uint64{}
		}
		c.failures[reason] += failures
	}
}
