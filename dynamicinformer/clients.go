package dynamicinformer

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/dynamicclient"
)

// clients are a factory's clients. They have one connection pool, one rate limit
// and one set of tables.
type clients struct {
	own    dynamic.Interface // its objects may be written to before they are cached
	shared dynamic.Interface // its objects share equal parts; nil: there is only own

	metadata metadata.Interface // nil: there is none

	// config and http are for further clients; http is nil if there is only own.
	config *rest.Config
	http   *http.Client
}

// newClients returns the clients of a factory for the server that cfg reaches.
func newClients(cfg *rest.Config, httpClient *http.Client, opts []dynamicclient.Option) (clients, error) {
	cfg = limited(cfg)
	opts = append([]dynamicclient.Option{dynamicclient.WithTables(dynamicclient.NewTables()), defaultSharing()}, opts...)
	shared, err := dynamicclient.NewForHTTPClient(cfg, httpClient, opts...)
	if err != nil {
		return clients{}, err
	}
	own, err := dynamicclient.NewForHTTPClient(cfg, httpClient, append(opts, dynamicclient.WithoutSharing())...)
	if err != nil {
		return clients{}, err
	}
	partial, err := metadata.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return clients{}, fmt.Errorf("dynamicinformer: %w", err)
	}
	return clients{own: own, shared: shared, metadata: partial, config: cfg, http: httpClient}, nil
}

// limited returns cfg with the rate limiter that client-go would create for it, so that several
// clients can share it.
func limited(cfg *rest.Config) *rest.Config {
	qps, burst := cmp.Or(cfg.QPS, rest.DefaultQPS), cmp.Or(cfg.Burst, rest.DefaultBurst)
	if cfg.RateLimiter != nil || qps < 0 {
		return cfg
	}
	cfg = rest.CopyConfig(cfg)
	cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(qps, burst)
	return cfg
}

// defaultSharing is how a factory's objects are decoded by default.
func defaultSharing() dynamicclient.Option {
	if detectsMutations() {
		return dynamicclient.WithoutSharing()
	}
	return dynamicclient.WithSharing()
}

// detectsMutations reports whether client-go checks for writes to cached objects. With shared parts,
// it would report many objects after a write to one object.
func detectsMutations() bool {
	detects, _ := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR"))
	return detects
}

// choice is the dynamic client of one informer: the client with shared parts, unless the informer
// has a transform.
type choice struct {
	*clients
	transformed atomic.Bool
}

// Resource implements dynamic.Interface.
func (c *choice) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	if c.transformed.Load() {
		return c.own.Resource(gvr)
	}
	return c.shared.Resource(gvr)
}
