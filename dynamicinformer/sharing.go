package dynamicinformer

import (
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

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

// observe lets client know if g is given a transform.
func (g *genericInformer) observe(client dynamic.Interface) {
	if choice, ok := client.(*choice); ok {
		g.informer = &observedInformer{SharedIndexInformer: g.informer, choice: choice}
	}
}

// observedInformer is an informer that lets its choice know of a transform.
type observedInformer struct {
	cache.SharedIndexInformer
	choice *choice

	mu sync.Mutex // makes one of setting and knowing
}

// SetTransform implements cache.SharedInformer. The informer may be about to run:
// what it lists from now on must be its own before the transform is there.
func (i *observedInformer) SetTransform(transform cache.TransformFunc) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.choice.transformed.Swap(true)
	if err := i.SharedIndexInformer.SetTransform(transform); err != nil {
		i.choice.transformed.Store(before)
		return err
	}
	i.choice.transformed.Store(transform != nil)
	return nil
}
