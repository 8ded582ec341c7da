package informers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/informers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUse_StopsTheSetAfterAnError(t *testing.T) {
	failed, left := errors.New("do failed"), errors.New("Stop failed")
	var running context.Context
	open := informers.Open(func(ctx context.Context, _ *rest.Config) (*informers.Set, error) {
		running = ctx //nolint:fatcontext // to check that it ends
		return &informers.Set{Stop: func(ctx context.Context) error {
			if running.Err() == nil || ctx.Err() != nil {
				t.Errorf("at Stop, the context of Open has error %v, and that of Use %v", running.Err(), ctx.Err())
			}
			return left
		}}, nil
	})
	err := open.Use(t.Context(), nil, func(context.Context, *informers.Set) error { return failed })
	if !errors.Is(err, failed) || !errors.Is(err, left) {
		t.Errorf("error: %v", err)
	}
}

func TestUse_FailsIfOpenFails(t *testing.T) {
	broken := errors.New("Open failed")
	open := informers.Open(func(context.Context, *rest.Config) (*informers.Set, error) { return nil, broken })
	err := open.Use(t.Context(), nil, func(context.Context, *informers.Set) error {
		t.Error("do was called")
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("error: %v", err)
	}
}

func TestCounter_CountsEachKindOfEvent(t *testing.T) {
	c := informers.NewCounter()
	c.Expect(4)
	c.OnAdd(nil, true)
	c.OnUpdate(nil, nil)
	c.OnMoved(nil)
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := c.Wait(ctx); !errors.Is(err, over) || !strings.Contains(err.Error(), "1 events are missing") {
		t.Errorf("Wait: %v", err)
	}
	c.OnDelete(nil)
	if at, err := c.Wait(t.Context()); err != nil || at.IsZero() {
		t.Errorf("Wait: %v, %v", at, err)
	}
}
