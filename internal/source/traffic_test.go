package source

import (
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

// A handler may get an event before the call that sends it returns.
func TestTraffic_CountsAnEventBeforeItIsSent(t *testing.T) {
	var counted traffic
	received := true
	send := counted.count(func(watch.Event) bool {
		if got := counted.events.Load(); received && got != 1 {
			t.Errorf("%d events count while the first one is sent", got)
		}
		return received
	})
	send(watch.Event{Type: watch.Added})
	received = false
	send(watch.Event{Type: watch.Deleted})
	send(watch.Event{Type: watch.Bookmark})
	if got := counted.events.Load(); got != 1 {
		t.Errorf("%d events count, want the received one", got)
	}
}
