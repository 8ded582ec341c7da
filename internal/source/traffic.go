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

// count returns a function that calls send and counts the objects that the reflector receives.
func (t *traffic) count(send func(watch.Event) bool) func(watch.Event) bool {
	return func(event watch.Event) bool {
		if !send(event) {
			return false
		}
		switch event.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			t.add(1)
		}
		return true
	}
}

func (t *traffic) add(events int) {
	t.events.Add(uint64(events)) //nolint:gosec // never negative
	t.last.Store(time.Now().UnixNano())
}

func (t *traffic) lastEvent() time.Time {
	at := t.last.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at)
}
