package inflight_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gvrkit/gvrkit/internal/inflight"
)

func done(c *inflight.Counter) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func TestCounter_DoneWhenClosedAndNothingIsInFlight(t *testing.T) {
	c := &inflight.Counter{}
	for range 2 {
		if !c.Begin() {
			t.Fatal("an open counter refuses a call")
		}
	}
	c.End()
	c.End()
	if done(c) || c.Closed() {
		t.Error("done before it is closed")
	}
	if !c.Begin() {
		t.Fatal("an open counter refuses a call after earlier ones have ended")
	}
	c.Close()
	c.Close()
	if done(c) || !c.Closed() {
		t.Error("done while a call is in flight")
	}
	if c.Begin() {
		t.Error("a closed counter accepts a call")
	}
	c.End()
	if !done(c) {
		t.Error("not done after the last call has ended")
	}
}

func TestCounter_DoneAtOnceWithoutCalls(t *testing.T) {
	c := &inflight.Counter{}
	c.Close()
	if !done(c) {
		t.Error("not done")
	}
}

func TestCounter_ManyAtOnce(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		c := &inflight.Counter{}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for c.Begin() {
					c.End()
				}
			})
		}
		c.Close()
		<-c.Done()
		all.Wait()
	})
}
