package dynamicclient_test

import (
	"context"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// limiter is a rate limiter that counts and does not limit.
type limiter struct {
	flowcontrol.RateLimiter
	waits atomic.Int64
}

func newLimiter() *limiter { return &limiter{RateLimiter: flowcontrol.NewFakeAlwaysRateLimiter()} }

func (l *limiter) Wait(context.Context) error {
	l.waits.Add(1)
	return nil
}

func TestClient_AsksTheRateLimiterAsClientGo(t *testing.T) {
	busy := stubserver.WithHeader("Retry-After", "0", stubserver.Respond(429, "text/plain", "busy"))
	s := serve(t)
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			waits := map[string]int64{}
			for name, newClient := range map[string]newClientFunc{"client-go's": stock, "ours": made()} {
				counting := newLimiter()
				config := func(cfg *rest.Config) { cfg.RateLimiter = counting }
				s.outcome(t, exchange{config: config, replies: []stubserver.Reply{busy, busy, stubserver.JSON(success)}, call: c.call}, newClient)
				waits[name] = counting.waits.Load()
			}
			if waits["ours"] != waits["client-go's"] || waits["ours"] == 0 {
				t.Errorf("waits = %v", waits)
			}
		})
	}
}

func TestClient_KeepsToQPSAndBurst(t *testing.T) {
	const burst = 3
	upToTheLimit := func(ctx context.Context, c dynamic.Interface) (any, error) {
		for range burst {
			if _, err := get()(ctx, c); err != nil {
				return nil, err
			}
		}
		return get()(ctx, c) // would have to wait for longer than ctx lives
	}
	s := serve(t)
	row := exchange{
		config:  func(cfg *rest.Config) { cfg.QPS, cfg.Burst = 1e-4, burst },
		replies: []stubserver.Reply{stubserver.JSON(widgetA)},
		call:    upToTheLimit,
		fails:   "client rate limiter Wait returned an error",
	}
	s.check(t, row)
	if got := len(s.outcome(t, row, made()).Arrivals); got != burst {
		t.Errorf("%d requests arrived, want %d", got, burst)
	}
}
