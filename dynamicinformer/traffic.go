package dynamicinformer

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gvrkit/gvrkit/internal/source"
)

// Traffic is what one informer has asked for and been given since it was made. Its counts
// only grow.
type Traffic struct {
	// Lists is how many lists were answered, with all of their pages or as watch-lists, and
	// Watches how many watches.
	Lists   uint64
	Watches uint64
	// Failures is how often a list or watch failed or broke, by reason, attempts included that
	// client-go makes by itself, of which [NewForConfig] tells. Nil: never.
	Failures map[Reason]uint64
	// Bytes is how many came as bodies of answers, unpacked. It is zero with a client that
	// does not tell, which is any but that of [NewForConfig].
	Bytes uint64
	// Events is how many objects the informer was given, in lists, as changes and as
	// deletions, and LastEvent when that was last; zero: never.
	Events    uint64
	LastEvent time.Time
}

// traffic counts requests.
type traffic struct {
	lists, watches, bytes atomic.Uint64

	mu       sync.Mutex
	failures map[Reason]uint64
}

func (t *traffic) succeeded(verb string) {
	if verb == source.VerbList {
		t.lists.Add(1)
		return
	}
	t.watches.Add(1)
}

func (t *traffic) failed(reason Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failures == nil {
		t.failures = map[Reason]uint64{}
	}
	t.failures[reason]++
}

// trafficIn returns that of e, whose source is in state.
func (e *entry) trafficIn(state source.State) Traffic {
	e.traffic.mu.Lock()
	failures := maps.Clone(e.traffic.failures)
	e.traffic.mu.Unlock()
	return Traffic{
		Lists: e.traffic.lists.Load(), Watches: e.traffic.watches.Load(), Bytes: e.traffic.bytes.Load(),
		Failures: failures, Events: state.Events, LastEvent: state.LastEvent,
	}
}
