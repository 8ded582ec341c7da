package source

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Memory may be released between the refusal of a list and the pause that follows.
func TestMemoryBudget_AReleaseBeforeThePauseEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewMemoryBudget(100)
		other, g := &gate{}, &gate{cfg: Config{Budget: b}}
		if err := b.reserve(other, 90); err != nil {
			t.Fatal(err)
		}
		refused, is := errors.AsType[*OverBudgetError](b.reserve(g, 50))
		if !is || refused.Left != 10 {
			t.Fatalf("%+v", refused)
		}
		b.leave(other)
		begun := time.Now()
		wait := func() {
			p := pace{until: time.Now().Add(time.Minute)}
			if !g.pause(t.Context(), &p, nil) {
				t.Error("the pause has another end")
			}
		}
		wait()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the list waits for %v", took)
		}
		wait() // it ends only one pause
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("the next list waits for %v", took)
		}
		if err := b.reserve(g, 100); err != nil {
			t.Error(err)
		}
	})
}

func TestMemoryBudget_ZeroIsNoLimit(t *testing.T) {
	for _, bytes := range []int64{0, -1} {
		b := NewMemoryBudget(bytes)
		b.settle(nil)
		b.leave(nil)
		if b != nil || b.hasReleased(nil) {
			t.Errorf("%d bytes are a limit", bytes)
		}
	}
}
