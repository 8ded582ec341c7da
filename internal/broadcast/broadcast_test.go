package broadcast_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gvrkit/gvrkit/internal/broadcast"
)

func TestBroadcaster_WakesAllThatWaitAndNoneLater(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var b broadcast.Broadcaster
		b.Broadcast() // no goroutine waits
		var waiting sync.WaitGroup
		for range 3 {
			next := b.Next()
			waiting.Go(func() { <-next })
		}
		b.Broadcast()
		waiting.Wait()
		select {
		case <-b.Next():
			t.Error("a goroutine that waits only after Broadcast is woken")
		default:
		}
	})
}
