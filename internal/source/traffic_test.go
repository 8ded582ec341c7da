package source

import (
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// A handler may get an event before the call that sends it returns.
func TestTraffic_CountsAnEventBeforeItIsSent(t *testing.T) {
	var counted traffic
	received := true
	send := func(event watch.Event) {
		counted.count(event, func(watch.Event) bool {
			if got := counted.events.Load(); received && got != 1 {
				t.Errorf("%d events count while the first one is sent", got)
			}
			return received
		})
	}
	send(watch.Event{Type: watch.Added})
	received = false
	send(watch.Event{Type: watch.Deleted})
	send(watch.Event{Type: watch.Bookmark})
	if got := counted.events.Load(); got != 1 {
		t.Errorf("%d events count, want the received one", got)
	}
}

// Follow releases a lease once its source has no objects and its handlers no waiting events.
func TestTraffic_CountsADeletionBeforeTheObjectIsUnknown(t *testing.T) {
	s := &resumableWatch{gate: &gate{}, out: func(watch.Event) bool { return true }}
	s.known.mu.Lock() // the object stays known
	sent := make(chan bool)
	go func() { sent <- s.sendDeletion(watch.Event{Type: watch.Deleted}, "ns/a") }()
	for began := time.Now(); s.traffic.events.Load() == 0; runtime.Gosched() {
		if time.Since(began) > 10*time.Second {
			t.Error("the deletion does not count while the object is known")
			break
		}
	}
	s.known.mu.Unlock()
	if !<-sent {
		t.Error("the deletion was not sent")
	}
}
