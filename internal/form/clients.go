package form

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/dynamicclient"
	ipacked "github.com/gvrkit/gvrkit/internal/packed"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typed"
	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/internal/wire"
	"github.com/gvrkit/gvrkit/packed"
)

// Clients are a factory's clients. They have one connection pool, one rate limit
// and one set of tables.
type Clients struct {
	// Own is for the program and, if there are no others, for informers. Metadata is nil if there is none.
	Own      dynamic.Interface
	Metadata metadata.Interface

	// unshared and shared are for informers: an object that can't be decoded is an undecodable.Object. The
	// objects of shared share equal parts; those of unshared may be written to. Nil: there is only Own.
	unshared, shared dynamic.Interface

	// packing returns a client of packed objects, otherwise as unshared; nil: there is only Own.
	packing func(packer *packed.Packer) (dynamic.Interface, error)

	partial source.Client // metadata for informers, as unshared; nil: Metadata
	sharing wire.Sharing  // of metadata and Go types

	namespaces source.Client // metadata with all fields; nil: the other clients keep what informers read of Namespace objects

	typed *typed.Server // for clients of Go types; nil if there is only Own
}

// NewClients returns the clients of a factory for the server that cfg reaches.
func NewClients(cfg *rest.Config, httpClient *http.Client, opts []dynamicclient.Option) (Clients, error) {
	cfg = limited(cfg)
	opts = append([]dynamicclient.Option{dynamicclient.WithTables(dynamicclient.NewTables()), defaultSharing()}, opts...)
	drop, sharing := wire.DecodingOf(opts)
	c := Clients{typed: typed.NewServer(cfg, httpClient, drop), sharing: sharing}
	for client, further := range map[*dynamic.Interface][]dynamicclient.Option{
		&c.Own:      {dynamicclient.WithoutSharing()},
		&c.unshared: {dynamicclient.WithoutSharing(), undecodable.Option.(dynamicclient.Option)},
		&c.shared:   {undecodable.Option.(dynamicclient.Option)},
	} {
		var err error
		if *client, err = dynamicclient.NewForHTTPClient(cfg, httpClient, slices.Concat(opts, further)...); err != nil {
			return Clients{}, err
		}
	}
	c.packing = func(packer *packed.Packer) (dynamic.Interface, error) {
		return dynamicclient.NewForHTTPClient(cfg, httpClient, append(slices.Clip(opts), ipacked.Option(ipacked.Reader(packer)).(dynamicclient.Option))...)
	}
	var err error
	if c.Metadata, err = metadata.NewForConfigAndClient(cfg, httpClient); err != nil {
		return Clients{}, fmt.Errorf("dynamicinformer: %w", err)
	}
	if c.partial, err = typed.Metadata(c.Metadata, cfg, httpClient, drop); err != nil {
		return Clients{}, fmt.Errorf("dynamicinformer: %w", err)
	}
	if !leavesOutOfNamespaces(drop) {
		return c, nil
	}
	if c.namespaces, err = typed.Metadata(c.Metadata, cfg, httpClient, nil); err != nil {
		return Clients{}, fmt.Errorf("dynamicinformer: %w", err)
	}
	return c, nil
}

// WithMetadata returns c with another client of metadata.
func (c Clients) WithMetadata(client metadata.Interface) Clients {
	c.Metadata, c.partial = client, nil
	return c
}

// limited returns a copy of cfg, for clients that are created later, with the rate limiter that client-go would create for it, so that
// several clients can share it.
func limited(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	qps, burst := cmp.Or(cfg.QPS, rest.DefaultQPS), cmp.Or(cfg.Burst, rest.DefaultBurst)
	if cfg.RateLimiter == nil && qps > 0 {
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(qps, burst)
	}
	if cfg.RateLimiter != nil {
		cfg.RateLimiter = source.Limiter(cfg.RateLimiter)
	}
	return cfg
}

// defaultSharing is how a factory's objects are decoded by default.
func defaultSharing() dynamicclient.Option {
	if ipacked.DetectsMutations() {
		return dynamicclient.WithoutSharing()
	}
	return dynamicclient.WithSharing()
}

// leavesOutOfNamespaces reports whether drop has fields that informers read of Namespace objects: labels or the deletionTimestamp.
func leavesOutOfNamespaces(drop *wire.Drop) bool {
	metadata := wire.Root(drop).Below([]byte("metadata"))
	labels := metadata.Below([]byte("labels"))
	return labels.Dropped() || labels.Leaves() != nil || metadata.Below([]byte("deletionTimestamp")).Dropped()
}

// ForNamespaces returns the client that lists Namespace objects for an informer of form f, whose client is of. A Go
// type is not that of a Namespace: the fields of both may differ. Informers read the labels and the deletionTimestamp of
// a Namespace, so the client does not leave these out.
func (c *Clients) ForNamespaces(f Form, of source.Client) source.Client {
	if _, is := f.(Metadata); c.namespaces != nil && (!is || c.partial != nil) {
		return c.namespaces
	}
	switch f.(type) {
	case Unstructured, Metadata:
		return of
	}
	if c.unshared != nil {
		return source.Unstructured(c.unshared)
	}
	return source.Unstructured(c.Own)
}

// Packing says when the cache of an informer is packed.
type Packing int

// The values of Packing.
const (
	Never Packing = iota
	OnDemand
	Always
)

// Client is the client of one informer.
type Client struct {
	source.Client
	// Transformed is set while the informer has a transform; nil: the client does not need that.
	Transformed *atomic.Bool
	// Packer packs the objects of the informer's cache; nil: it is not packed. The client's objects are those of the packer, or unstructured.
	// Packs is set when objects are packed; nil: always.
	Packer *packed.Packer
	Packs  *atomic.Bool
}

// For returns the client of one informer with objects of form f, as [Form.Client] does. Objects that are not unstructured are never packed.
func (c *Clients) For(f Form, pack Packing) (Client, error) {
	made := Client{Packer: Packer(f, pack != Never)}
	if made.Packer != nil && pack == OnDemand {
		made.Packs = &atomic.Bool{}
	}
	var err error
	if made.Packer == nil || c.packing == nil {
		made.Client, made.Transformed, err = f.Client(c)
		return made, err
	}
	packing, err := c.packing(made.Packer)
	if err != nil {
		return Client{}, err
	}
	chosen := &choice{usual: packing, unshared: c.unshared, trees: c.shared, packs: made.Packs}
	made.Client, made.Transformed = typed.Packing(chosen), &chosen.transformed
	return made, nil
}

// Packer returns the packer of an informer with objects of form f, or nil if its cache should not be packed, or f can't be.
func Packer(f Form, pack bool) *packed.Packer {
	if !pack || f != (Unstructured{}) {
		return nil
	}
	return packed.NewPacker()
}

// choice is the dynamic client of one informer: the usual one, unless the informer has a transform. Then it is one whose
// objects can be written to.
type choice struct {
	usual, unshared dynamic.Interface
	transformed     atomic.Bool

	trees dynamic.Interface // the usual one while packs is false
	packs *atomic.Bool      // nil: trees is not used
}

// Resource implements dynamic.Interface.
func (c *choice) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	if c.transformed.Load() {
		return c.unshared.Resource(gvr)
	}
	if c.packs != nil && !c.packs.Load() {
		return c.trees.Resource(gvr)
	}
	return c.usual.Resource(gvr)
}
