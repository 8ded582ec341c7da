package dynamicinformer

import (
	"cmp"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/dynamicclient"
)

// clients are a factory's dynamic clients. Two clients have one connection pool, one rate limit
// and one set of tables.
type clients struct {
	own    dynamic.Interface // its objects may be written to before they are cached
	shared dynamic.Interface // its objects share equal parts; nil: there is only own
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
	return clients{own: own, shared: shared}, nil
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
	clients
	transformed atomic.Bool
}

// forOne returns the client for one informer. The informer sets transformed, which may be nil, while it
// has a transform.
func (c clients) forOne() (client dynamic.Interface, transformed *atomic.Bool) {
	if c.shared == nil {
		return c.own, nil
	}
	chosen := &choice{clients: c}
	return chosen, &chosen.transformed
}

// Resource implements dynamic.Interface.
func (c *choice) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	if c.transformed.Load() {
		return c.own.Resource(gvr)
	}
	return c.shared.Resource(gvr)
}

// orNil returns client, and nil for one that holds a nil pointer.
func orNil(client dynamic.Interface) dynamic.Interface {
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return client
}
