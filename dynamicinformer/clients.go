package dynamicinformer

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typed"
	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// clients are a factory's clients. They have one connection pool, one rate limit
// and one set of tables.
type clients struct {
	own dynamic.Interface // for the program and, if there are no others, informers
	// unshared and shared are for informers: an object that can't be decoded is an undecodable.Object. The
	// objects of shared share equal parts; those of unshared may be written to. Nil: there is only own.
	unshared, shared dynamic.Interface

	metadata metadata.Interface // nil: there is none
	partial  source.Client      // metadata for informers, as unshared; nil: metadata

	typed *typed.Server // for clients of Go types; nil if there is only own
}

// newClients returns the clients of a factory for the server that cfg reaches.
func newClients(cfg *rest.Config, httpClient *http.Client, opts []dynamicclient.Option) (clients, error) {
	cfg = limited(cfg)
	c := clients{typed: typed.NewServer(cfg, httpClient)}
	opts = append([]dynamicclient.Option{dynamicclient.WithTables(dynamicclient.NewTables()), defaultSharing()}, opts...)
	for client, further := range map[*dynamic.Interface][]dynamicclient.Option{
		&c.own:      {dynamicclient.WithoutSharing()},
		&c.unshared: {dynamicclient.WithoutSharing(), undecodable.Option.(dynamicclient.Option)},
		&c.shared:   {undecodable.Option.(dynamicclient.Option)},
	} {
		var err error
		if *client, err = dynamicclient.NewForHTTPClient(cfg, httpClient, slices.Concat(opts, further)...); err != nil {
			return clients{}, err
		}
	}
	var err error
	if c.metadata, err = metadata.NewForConfigAndClient(cfg, httpClient); err != nil {
		return clients{}, fmt.Errorf("dynamicinformer: %w", err)
	}
	if c.partial, err = typed.Metadata(c.metadata, cfg, httpClient); err != nil {
		return clients{}, fmt.Errorf("dynamicinformer: %w", err)
	}
	return c, nil
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
		return c.unshared.Resource(gvr)
	}
	return c.shared.Resource(gvr)
}
