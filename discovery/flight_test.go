package discovery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hangar is flights that count, and answer after a second.
type hangar struct {
	flights[string, int32]
	asked atomic.Int32
}

func newHangar() *hangar {
	return &hangar{flights: flights[string, int32]{timeout: time.Minute}}
}

func (h *hangar) ask(ctx context.Context) (int32, error) {
	number := h.asked.Add(1)
	select {
	case <-time.After(time.Second):
		return number, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func TestFlights_AllWhoAskTheSameShareOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangar()
		var wg sync.WaitGroup
		var joined atomic.Int32
		for i := range 100 {
			if i == 1 {
				synctest.Wait() // the question has been asked: those who come now join it
			}
			wg.Go(func() {
				got, late, err := h.do(t.Context(), "a", nil, h.ask)
				if got != 1 || err != nil {
					t.Errorf("answer = %d, %v", got, err)
				}
				if late {
					joined.Add(1)
				}
			})
		}
		wg.Wait()
		if got := h.asked.Load(); got != 1 {
			t.Errorf("asked %d times", got)
		}
		if got := joined.Load(); got != 99 {
			t.Errorf("%d joined, want 99", got)
		}
	})
}

func TestFlights_OtherQuestionsFlyByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangar()
		var wg sync.WaitGroup
		for _, key := range []string{"a", "b"} {
			wg.Go(func() { _, _, _ = h.do(t.Context(), key, nil, h.ask) })
		}
		wg.Wait()
		if got := h.asked.Load(); got != 2 {
			t.Errorf("asked %d times, want 2", got)
		}
	})
}

func TestFlights_WhoAsksAfterwardsGetsANewAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangar()
		for want := range int32(3) {
			if got, joined, err := h.do(t.Context(), "a", nil, h.ask); got != want+1 || joined || err != nil {
				t.Errorf("answer = %d, %v, %v", got, joined, err)
			}
		}
	})
}

// Whoever asked first: its context is not the others'.
func TestFlights_ACancelledCallerHurtsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangar()
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			begun := time.Now()
			if _, _, err := h.do(first, "a", nil, h.ask); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled caller: %v", err)
			}
			if took := time.Since(begun); took != 500*time.Millisecond {
				t.Errorf("the cancelled caller waited %v", took)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, _, err := h.do(t.Context(), "a", nil, h.ask); got != 1 || err != nil {
				t.Errorf("the other: %d, %v", got, err)
			}
		})
		synctest.Wait()
		time.Sleep(500 * time.Millisecond)
		cancel()
		wg.Wait()
	})
}

func TestFlights_TheLastToLeaveEndsTheFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangar()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			time.Sleep(100 * time.Millisecond)
			cancel()
		}()
		_, _, err := h.do(ctx, "a", nil, func(ctx context.Context) (int32, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // to clean up
			close(ended)
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
		select {
		case <-ended:
		default:
			t.Error("the caller has gone and its flight flies on")
		}
	})
}

func TestFlights_NobodyJoinsAFlightThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangar()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = h.do(ctx, "a", nil, func(ctx context.Context) (int32, error) {
				<-ctx.Done()
				time.Sleep(time.Second)
				return 0, ctx.Err()
			})
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		if got, joined, err := h.do(t.Context(), "a", nil, h.ask); got != 1 || joined || err != nil {
			t.Errorf("answer = %d, %v, %v", got, joined, err)
		}
		wg.Wait()
	})
}

func TestFlights_EndAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangar()
		h.timeout = 100 * time.Millisecond
		if _, _, err := h.do(t.Context(), "a", nil, h.ask); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestFlights_AnEndedContextAsksNothing(t *testing.T) {
	h := newHangar()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := h.do(ctx, "a", nil, h.ask); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if got := h.asked.Load(); got != 0 {
		t.Errorf("asked %d times", got)
	}
}

func TestFlights_AnAnswerIsNotOlderThanWhoWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHangar()
		turn := make(chan struct{})
		admit := func(ctx context.Context) error {
			select {
			case <-turn:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if got, joined, err := h.do(t.Context(), "a", admit, h.ask); got != 1 || joined || err != nil {
					t.Errorf("do = %v, joined: %v, %v", got, joined, err)
				}
			})
		}
		synctest.Wait()
		close(turn)
		wg.Wait()
		refusal := errors.New("too many")
		got, _, err := h.do(t.Context(), "b", func(context.Context) error { return refusal }, h.ask)
		if got != 0 || !errors.Is(err, refusal) {
			t.Errorf("of a flight that is refused: %v, %v", got, err)
		}
	})
}
