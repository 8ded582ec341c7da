package informers_test

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/informers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestUse_StopsTheSetAfterAFailureToo(t *testing.T) {
	failed, left := errors.New("it fails"), errors.New("something is left")
	var life context.Context
	open := informers.Open(func(ctx context.Context, _ *rest.Config) (*informers.Set, error) {
		life = ctx //nolint:fatcontext // to see that it ends
		return &informers.Set{Stop: func(ctx context.Context) error {
			if life.Err() == nil || ctx.Err() != nil {
				t.Errorf("stopped while its context has not ended (%v), or when that of Use has (%v)", life.Err(), ctx.Err())
			}
			return left
		}}, nil
	})
	err := open.Use(t.Context(), nil, func(context.Context, *informers.Set) error { return failed })
	if !errors.Is(err, failed) || !errors.Is(err, left) {
		t.Errorf("error: %v", err)
	}
}

func TestUse_FailsIfTheSetDoesNotOpen(t *testing.T) {
	broken := errors.New("it does not open")
	open := informers.Open(func(context.Context, *rest.Config) (*informers.Set, error) { return nil, broken })
	err := open.Use(t.Context(), nil, func(context.Context, *informers.Set) error {
		t.Error("it is used")
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("error: %v", err)
	}
}
