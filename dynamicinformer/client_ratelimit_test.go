package dynamicinformer_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
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

// After an outage, informers compare versions by lists of at most one object. If the rate limit delayed them, they would be late, and whole
// lists would follow.
func TestClientInformers_ComparisonsAfterAnOutageHaveNoRateLimit(t *testing.T) {
	const informers = 100
	synctest.Test(t, func(t *testing.T) {
		server := &breaking{lists: map[string]int{}}
		f, err := dynamicinformer.NewForConfig(&rest.Config{Host: "http://server", Transport: server}, dynamicinformer.WithDiscovery(nil))
		if err != nil {
			t.Fatal(err)
		}
		for i := range informers {
			f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprint("widgets", i)})
		}
		f.Start(t.Context())
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		server.breakWatches()
		time.Sleep(time.Minute)
		if diff := cmp.Diff(map[string]int{"limit=1": informers}, server.listed()); diff != "" {
			t.Errorf("lists after the outage (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

// breaking is a transport to a server of no objects, which supports watch-lists. It counts the queries of lists.
type breaking struct {
	mu      sync.Mutex
	lists   map[string]int
	watches []*io.PipeWriter
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	if r.URL.Query().Get("watch") == "" {
		b.lists[r.URL.RawQuery]++
		response.Body = io.NopCloser(strings.NewReader(stubserver.WidgetList()))
		return response, nil
	}
	body, watch := io.Pipe()
	b.watches, response.Body = append(b.watches, watch), body
	if r.URL.Query().Get("sendInitialEvents") != "" {
		go fmt.Fprint(watch, stubserver.Event("BOOKMARK", stubserver.Bookmark))
	}
	return response, nil
}

// breakWatches ends all watches without their last chunk.
func (b *breaking) breakWatches() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, watch := range b.watches {
		watch.CloseWithError(io.ErrUnexpectedEOF)
	}
	b.watches = nil
}

func (b *breaking) listed() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.lists)
}
