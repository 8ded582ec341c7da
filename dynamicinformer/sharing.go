package dynamicinformer

import (
	"net/http"
	"os"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// clients are a factory's dynamic clients. If they are two, they stand on one
// connection, one rate limit and one set of tables.
type clients struct {
	own    dynamic.Interface // whose objects may be written to before they are cached
	shared dynamic.Interface // whose objects have parts in common; nil: there is none
}

// newClients returns the clients of a factory for the server that cfg reaches.
func newClients(cfg *rest.Config, httpClient *http.Client, o *clientOptions) (clients, error) {
	settings := o.settings()
	if settings == nil || settings.Sharing == wire.Own {
		own, err := newRESTClient(cfg, httpClient, settings)
		if err != nil {
			return clients{}, err
		}
		return clients{own: dynamic.New(own)}, nil
	}
	shared, err := newRESTClient(cfg, httpClient, settings)
	if err != nil {
		return clients{}, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.RateLimiter = shared.GetRateLimiter()
	settings.Sharing = wire.Own
	own, err := newRESTClient(cfg, httpClient, settings)
	if err != nil {
		return clients{}, err
	}
	return clients{own: dynamic.New(own), shared: dynamic.New(shared)}, nil
}

// defaultSharing is how a factory's objects are decoded if nobody says otherwise.
func defaultSharing() ClientOption {
	if detecting, _ := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR")); detecting {
		return WithoutSharing()
	}
	return WithSharing()
}

// choice is the dynamic client of one informer: the one whose objects share parts,
// unless the informer has a transform.
type choice struct {
	clients
	transformed atomic.Bool
}

// forOne returns the client for one informer.
func (c clients) forOne() dynamic.Interface {
	if c.shared == nil {
		return c.own
	}
	return &choice{clients: c}
}

// Resource implements dynamic.Interface.
func (c *choice) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	if c.transformed.Load() {
		return c.own.Resource(gvr)
	}
	return c.shared.Resource(gvr)
}
