// Package informers makes the informers of client-go and of gvrkit that scenarios compare, with one
// interface.
package informers

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/packed"
)

// Open makes a set of informers on the server of cfg. They run until ctx ends.
type Open func(ctx context.Context, cfg *rest.Config) (*Set, error)

// Set is a group of informers of one implementation.
type Set struct {
	// Add makes an informer on a type.
	Add func(ctx context.Context, gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error)
	// Start starts all informers that have not started.
	Start func()
	// Wait waits until all informers have synced.
	Wait func(ctx context.Context) error
	// Stop waits until all goroutines have ended. The context of Open must have ended before.
	Stop func(ctx context.Context) error
}

// Use opens a set of informers on the server of cfg, calls do, and stops the set.
func (open Open) Use(ctx context.Context, cfg *rest.Config, do func(ctx context.Context, set *Set) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	set, err := open(running, cfg)
	if err != nil {
		return err
	}
	err = do(running, set)
	stop()
	return errors.Join(err, set.Stop(ctx))
}

// ClientGo makes informers with client-go's dynamic factory.
func ClientGo(ctx context.Context, cfg *rest.Config) (*Set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return newUpstreamSet(ctx, upstream.NewDynamicSharedInformerFactory(client, 0)), nil
}

// ClientGoMetadata makes informers with client-go's metadata factory.
func ClientGoMetadata(ctx context.Context, cfg *rest.Config) (*Set, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return newUpstreamSet(ctx, metadatainformer.NewSharedInformerFactory(client, 0)), nil
}

func newUpstreamSet(ctx context.Context, factory upstream.DynamicSharedInformerFactory) *Set {
	return &Set{
		Add: func(_ context.Context, gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			return factory.ForResource(gvr).Informer(), nil
		},
		Start: func() { factory.Start(ctx.Done()) },
		Wait: func(ctx context.Context) error {
			for gvr, synced := range factory.WaitForCacheSync(ctx.Done()) {
				if !synced {
					return fmt.Errorf("%v has not synced: %w", gvr, context.Cause(ctx))
				}
			}
			return nil
		},
		Stop: func(context.Context) error {
			factory.Shutdown()
			return nil
		},
	}
}

// GVRKit makes informers with ForResource of gvrkit's factory.
func GVRKit(opts ...dynamicinformer.Option) Open {
	return opener(opts, func(_ context.Context, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource) (informer, error) {
		return factory.ForResource(gvr), nil
	})
}

// Leases makes informers with leases on gvrkit's factory, which Add starts: its context must be that of Open.
func Leases(of dynamicinformer.LeaseOption, opts ...dynamicinformer.Option) Open {
	return opener(opts, func(ctx context.Context, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource) (informer, error) {
		factory.Start(ctx)
		return factory.Acquire(ctx, gvr, of)
	})
}

// Packed makes informers with packed caches, as Leases does. Their handlers get packed objects.
func Packed(opts ...dynamicinformer.Option) Open {
	return opener(opts, func(ctx context.Context, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource) (informer, error) {
		factory.Start(ctx)
		lease, err := factory.Acquire(ctx, gvr, dynamicinformer.WithPackedCache())
		return packedLease{lease}, err
	})
}

type packedLease struct{ *dynamicinformer.Lease }

func (l packedLease) Informer() cache.SharedIndexInformer {
	return packedInformer{l.Lease.Informer(), l.Lease}
}

type packedInformer struct {
	cache.SharedIndexInformer

	lease *dynamicinformer.Lease
}

// AddEventHandler adds handler, which gets packed objects.
func (i packedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.lease.AddPackedHandler(cache.TypedResourceEventHandlerFuncs[*packed.Object]{
		AddFunc:    func(obj *packed.Object) { handler.OnAdd(obj, false) },
		UpdateFunc: func(before, obj *packed.Object) { handler.OnUpdate(before, obj) },
		DeleteFunc: func(obj cache.DeletedObject[*packed.Object]) { handler.OnDelete(obj.OptionalObj) },
	}, cache.HandlerOptions{})
}

// Typed is Leases for informers whose objects are of type T.
func Typed[T dynamicinformer.Object](opts ...dynamicinformer.Option) Open {
	return opener(opts, func(ctx context.Context, factory *dynamicinformer.Factory, gvr schema.GroupVersionResource) (informer, error) {
		factory.Start(ctx)
		lease, err := dynamicinformer.AcquireTyped[T](ctx, factory, gvr)
		if err != nil {
			return nil, err
		}
		return lease.Lease, nil
	})
}

// informer is what a factory returns: a lease or an informer of client-go's kind.
type informer interface {
	Informer() cache.SharedIndexInformer
}

func opener(opts []dynamicinformer.Option, of func(context.Context, *dynamicinformer.Factory, schema.GroupVersionResource) (informer, error)) Open {
	return func(ctx context.Context, cfg *rest.Config) (*Set, error) {
		factory, err := dynamicinformer.NewForConfig(cfg, opts...)
		if err != nil {
			return nil, err
		}
		return &Set{
			Add: func(ctx context.Context, gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
				made, err := of(ctx, factory, gvr)
				if err != nil {
					return nil, err
				}
				return made.Informer(), nil
			},
			Start: func() { factory.Start(ctx) }, Stop: factory.Shutdown,
			Wait: func(ctx context.Context) error { return factory.WaitForSync(ctx) },
		}, nil
	}
}
