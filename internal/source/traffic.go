package source

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// traffic counts the objects that a reflector gets. It can be read at any time.
type traffic struct {
	events atomic.Uint64
	last   atomic.Int64 // the Unix time of the last one, in ns
}

// count calls send, and counts event if it has an object. It counts before it is sent, so that no handler gets
// an event that does not count.
func (t *traffic) count(event watch.Event, send func(watch.Event) bool) bool {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	default:
		return send(event)
	}
	t.add(1)
	if !send(event) {
		t.add(-1)
		return false
	}
	return true
}

// add counts events. A negative number takes back events that were counted and not received.
func (t *traffic) add(events int) {
	t.last.Store(time.Now().UnixNano()) // a reader that has the new number also has its time
	t.events.Add(uint64(events))        //nolint:gosec // modulo 2^64
}

func (t *traffic) lastEvent() time.Time {
	at := t.last.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}
