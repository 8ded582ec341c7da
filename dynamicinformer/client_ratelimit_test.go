package dynamicinformer_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// limiter is a rate limiter that counts requests, without a limit.
type limiter struct {
	flowcontrol.RateLimiter
	waits atomic.Int64
}

func newLimiter() *limiter { return &limiter{RateLimiter: flowcontrol.NewFakeAlwaysRateLimiter()} }

func (l *limiter) Wait(context.Context) error {
	l.waits.Add(1)
	return nil
}

// withBurst returns a factory that may send one list, and must wait for hours before the next one.
// Its informer on widgets has a transform, and its informer on blocks has none.
func withBurst(t *testing.T, c *cluster, config func(cfg *rest.Config)) *dynamicinformer.Factory {
	t.Helper()
	c.listed = true // client-go does not limit streams
	cfg := c.RESTConfig()
	config(cfg)
	f, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithDiscovery(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ForResource(widgets).Informer().SetTransform(writeName); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestClientInformers_ClientsOfAFactoryHaveOneRateLimit(t *testing.T) {
	c := newCluster(t)
	f := withBurst(t, c, func(cfg *rest.Config) { cfg.QPS, cfg.Burst = 1e-4, 1 })
	defer shutdown(t, f)
	failures := make(chan error, 2)
	for _, informer := range []cache.SharedIndexInformer{f.ForResource(widgets).Informer(), f.ForResource(blocks).Informer()} {
		if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			select {
			case failures <- err:
			default: // a retry
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // shorter than the wait for the limiter
	defer cancel()
	f.Start(ctx)
	synced := make(chan error, 1)
	go func() { synced <- f.WaitForSync(ctx) }()
	select {
	case err := <-failures: // of either informer
		if !strings.Contains(err.Error(), "client rate limiter Wait returned an error") {
			t.Error(err)
		}
	case err := <-synced:
		t.Errorf("no request was over the limit: %v", err)
	}
	lists := 0
	for _, a := range c.Arrivals() {
		if a.Method == http.MethodGet && !strings.Contains(a.Query, "watch=true") {
			lists++
		}
	}
	if lists > 1 {
		t.Errorf("%d lists arrived, want 1", lists)
	}
}

func TestClientInformers_ClientsOfAFactoryUseTheRateLimiterOfTheConfig(t *testing.T) {
	c := newCluster(t)
	counting := newLimiter()
	f := withBurst(t, c, func(cfg *rest.Config) { cfg.RateLimiter = counting })
	defer shutdown(t, f)
	f.ForResource(blocks)
	f.Start(t.Context())
	c.sync(t, f)
	if got := counting.waits.Load(); got != 2 {
		t.Errorf("the limiter was called %d times, want 2, one for each list", got)
	}
}
