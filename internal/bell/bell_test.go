package bell_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gvrkit/gvrkit/internal/bell"
)

func TestBell_WakesAllWhoWaitAndNobodyLater(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var b bell.Bell
		b.Ring() // nobody waits
		var waiting sync.WaitGroup
		for range 3 {
			next := b.Next()
			waiting.Go(func() { <-next })
		}
		b.Ring()
		waiting.Wait()
		select {
		case <-b.Next():
			t.Error("who comes after the bell has been rung is woken")
		default:
		}
	})
}
