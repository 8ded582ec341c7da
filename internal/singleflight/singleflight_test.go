package singleflight

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counter is a group whose requests are counted. The result of a request is its number, after a second.
type counter struct {
	Group[string, int32]
	requests atomic.Int32
}

func newCounter() *counter {
	return &counter{Group: Group[string, int32]{Timeout: time.Minute}}
}

func (c *counter) request(ctx context.Context) (int32, error) {
	number := c.requests.Add(1)
	select {
	case <-time.After(time.Second):
		return number, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func TestGroup_EqualCallsShareOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		var wg sync.WaitGroup
		var joined atomic.Int32
		for i := range 100 {
			if i == 1 {
				synctest.Wait() // the request has been sent: later calls join it
			}
			wg.Go(func() {
				got, late, err := c.Do(t.Context(), "a", nil, c.request)
				if got != 1 || err != nil {
					t.Errorf("result = %d, %v", got, err)
				}
				if late {
					joined.Add(1)
				}
			})
		}
		wg.Wait()
		if got := c.requests.Load(); got != 1 {
			t.Errorf("requests = %d, want 1", got)
		}
		if got := joined.Load(); got != 99 {
			t.Errorf("%d joined, want 99", got)
		}
	})
}

func TestGroup_CallsWithOtherKeysHaveOwnRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		var wg sync.WaitGroup
		for _, key := range []string{"a", "b"} {
			wg.Go(func() { _, _, _ = c.Do(t.Context(), key, nil, c.request) })
		}
		wg.Wait()
		if got := c.requests.Load(); got != 2 {
			t.Errorf("requests = %d, want 2", got)
		}
	})
}

func TestGroup_ALaterCallHasANewRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		for want := range int32(3) {
			if got, joined, err := c.Do(t.Context(), "a", nil, c.request); got != want+1 || joined || err != nil {
				t.Errorf("result = %d, %v, %v", got, joined, err)
			}
		}
	})
}

// Also if the cancelled caller has started the request.
func TestGroup_ACancelledCallerDoesNotAffectOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			begun := time.Now()
			if _, _, err := c.Do(first, "a", nil, c.request); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled caller: %v", err)
			}
			if took := time.Since(begun); took != 500*time.Millisecond {
				t.Errorf("the cancelled caller waited %v", took)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, _, err := c.Do(t.Context(), "a", nil, c.request); got != 1 || err != nil {
				t.Errorf("the other caller: %d, %v", got, err)
			}
		})
		synctest.Wait()
		time.Sleep(500 * time.Millisecond)
		cancel()
		wg.Wait()
	})
}

func TestGroup_TheLastCallerEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			time.Sleep(100 * time.Millisecond)
			cancel()
		}()
		_, _, err := c.Do(ctx, "a", nil, func(ctx context.Context) (int32, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // cleans up
			close(ended)
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
		select {
		case <-ended:
		default:
			t.Error("the last caller has returned before the end of the request")
		}
	})
}

func TestGroup_ACancelledRequestIsNotJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = c.Do(ctx, "a", nil, func(ctx context.Context) (int32, error) {
				<-ctx.Done()
				time.Sleep(time.Second)
				return 0, ctx.Err()
			})
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		if got, joined, err := c.Do(t.Context(), "a", nil, c.request); got != 1 || joined || err != nil {
			t.Errorf("result = %d, %v, %v", got, joined, err)
		}
		wg.Wait()
	})
}

func TestGroup_RequestsEndAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		c.Timeout = 100 * time.Millisecond
		if _, _, err := c.Do(t.Context(), "a", nil, c.request); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestGroup_AnEndedContextStartsNoRequest(t *testing.T) {
	c := newCounter()
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, _, err := c.Do(ctx, "a", nil, c.request); !errors.Is(err, over) {
		t.Errorf("error = %v, want the cause", err)
	}
	if got := c.requests.Load(); got != 0 {
		t.Errorf("requests = %d, want 0", got)
	}
}

func TestGroup_CallsBeforeAdmissionDoNotJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		admitted := make(chan struct{})
		admit := func(ctx context.Context) error {
			select {
			case <-admitted:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if got, joined, err := c.Do(t.Context(), "a", admit, c.request); got != 1 || joined || err != nil {
					t.Errorf("result = %v, joined: %v, %v", got, joined, err)
				}
			})
		}
		synctest.Wait()
		close(admitted)
		wg.Wait()
		refusal := errors.New("too many")
		got, _, err := c.Do(t.Context(), "b", func(context.Context) error { return refusal }, c.request)
		if got != 0 || !errors.Is(err, refusal) {
			t.Errorf("a request that is not admitted: %v, %v", got, err)
		}
	})
}

// A panic that only a goroutine of the group had could not be recovered by any caller.
func TestGroup_APanicReachesEachCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		broken := errors.New("broken")
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				defer func() {
					err, _ := recover().(error)
					if !errors.Is(err, broken) || !strings.Contains(err.Error(), "singleflight_test.go") {
						t.Errorf("panic = %v, want broken and the stack", err)
					}
				}()
				_, _, _ = c.Do(t.Context(), "a", nil, func(context.Context) (int32, error) {
					time.Sleep(time.Second)
					panic(broken)
				})
			})
		}
		wg.Wait()
		if got, joined, err := c.Do(t.Context(), "a", nil, c.request); got != 1 || joined || err != nil {
			t.Errorf("the next call = %d, %v, %v", got, joined, err)
		}
	})
}

func TestGroup_ACallWithoutAdmissionDoesNotWaitForThatOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounter()
		admitted := make(chan struct{})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				got, _, err := c.Do(t.Context(), "a", func(context.Context) error { <-admitted; return nil }, c.request)
				if got != 2 || err != nil {
					t.Errorf("admitted: %d, %v", got, err)
				}
			})
		}
		synctest.Wait()
		if got, joined, err := c.Do(t.Context(), "a", nil, c.request); got != 1 || joined || err != nil {
			t.Errorf("result = %d, %v, %v", got, joined, err)
		}
		close(admitted)
		wg.Wait()
	})
}
