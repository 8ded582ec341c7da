package metrics

import (
	"sync"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// carry keeps a resource's counters from falling when one of its informers ends while others
// go on: what was last told of that one is added from then on. A fall is a restart to
// Prometheus, which would take all that the others have counted for new.
type carry struct {
	mu        sync.Mutex
	resources map[names]*counters
}

// counters are those of one resource.
type counters struct {
	lists, watches, bytes, events tally
	failures                      map[dynamicinformer.Reason]tally
}

// tally is a counter that may fall.
type tally struct{ last, ended uint64 }

// total returns one that does not, which is at n now.
func (t *tally) total(n uint64) uint64 {
	if n < t.last {
		t.ended += t.last - n
	}
	t.last = n
	return t.ended + n
}

// correctLocked corrects resources, which are all that there are, and forgets the others. The
// caller holds mu since before they were looked at.
func (c *carry) correctLocked(resources []*resource) {
	before := c.resources
	c.resources = make(map[names]*counters, len(resources))
	for _, r := range resources {
		known := before[r.names]
		if known == nil {
			known = &counters{failures: map[dynamicinformer.Reason]tally{}}
		}
		known.correct(r)
		c.resources[r.names] = known
	}
}

func (c *counters) correct(r *resource) {
	r.lists = c.lists.total(r.lists)
	r.watches = c.watches.total(r.watches)
	r.bytes = c.bytes.total(r.bytes)
	r.events = c.events.total(r.events)
	for reason, known := range c.failures { // those of the ones that have ended, too
		r.fail(reason, known.total(r.failures[reason])-r.failures[reason])
		c.failures[reason] = known
	}
	for reason, failures := range r.failures {
		if _, known := c.failures[reason]; !known {
			c.failures[reason] = tally{last: failures}
		}
	}
}
