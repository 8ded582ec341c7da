package metrics

import (
	"sync"

	"github.com/gvrkit/gvrkit/status"
)

// carry keeps a resource's counters from falling when one of its informers ends while others
// go on: what was last told of that one is added from then on. A fall is a restart to
// Prometheus, which would take all that the others have counted for new.
type carry struct {
	mu        sync.Mutex
	resources map[names]*past
}

// past is what was last told of one resource.
type past struct {
	informers map[uint64]status.Traffic // by number
	ended     counts                    // of informers that had ended then
}

// addLocked adds to resources, which are all that there are and the sums of statuses, what
// has ended, and forgets other resources. The caller holds mu since before it asked how
// informers do.
func (c *carry) addLocked(resources []*resource, statuses []status.Informer) {
	now := make(map[names]*past, len(resources))
	for _, r := range resources {
		now[r.names] = &past{informers: map[uint64]status.Traffic{}}
	}
	for i := range statuses {
		if p := now[namesOf(statuses[i].GVR)]; p != nil && statuses[i].State != status.StateStopped {
			p.informers[statuses[i].ID] = statuses[i].Traffic
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

// pass tells what comes after p of those that have ended. If none of p's goes on it begins
// anew, as counters do after a restart.
func (p *past) pass(next *past) {
	goesOn := false
	next.ended.join(&p.ended)
	for number, traffic := range p.informers {
		if _, there := next.informers[number]; there {
			goesOn = true
			continue
		}
		next.ended.add(traffic)
	}
	if !goesOn {
		next.ended = counts{}
	}
}

// counts are what only grows.
type counts struct {
	lists, watches, bytes, events uint64
	failures                      map[status.Reason]uint64
}

func (c *counts) add(t status.Traffic) {
	c.join(&counts{t.Lists, t.Watches, t.Bytes, t.Events, t.Failures})
}

func (c *counts) join(other *counts) {
	c.lists += other.lists
	c.watches += other.watches
	c.bytes += other.bytes
	c.events += other.events
	for reason, failures := range other.failures {
		if c.failures == nil {
			c.failures = map[status.Reason]uint64{}
		}
		c.failures[reason] += failures
	}
}
