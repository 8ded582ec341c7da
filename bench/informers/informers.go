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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
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

// ClientGo makes informers with client-go's factory.
func ClientGo(ctx context.Context, cfg *rest.Config) (*Set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory := upstream.NewDynamicSharedInformerFactory(client, 0)
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
	}, nil
}

// GVRKit makes informers with ForResource of gvrkit's factory.
func GVRKit(opts ...dynamicinformer.Option) Open {
	return func(ctx context.Context, cfg *rest.Config) (*Set, error) {
		factory, err := dynamicinformer.NewForConfig(cfg, opts...)
		if err != nil {
			return nil, err
		}
		return newSet(ctx, factory, func(_ context.Context, gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			return factory.ForResource(gvr).Informer(), nil
		}), nil
	}
}

// Leases makes informers with leases on gvrkit's factory, which it starts.
func Leases(opts ...dynamicinformer.LeaseOption) Open {
	return func(ctx context.Context, cfg *rest.Config) (*Set, error) {
		factory, err := dynamicinformer.NewForConfig(cfg)
		if err != nil {
			return nil, err
		}
		factory.Start(ctx)
		return newSet(ctx, factory, func(ctx context.Context, gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			lease, err := factory.Acquire(ctx, gvr, opts...)
			if err != nil {
				return nil, err
			}
			return lease.Informer(), nil
		}), nil
	}
}

func newSet(ctx context.Context, factory *dynamicinformer.Factory, add func(context.Context, schema.GroupVersionResource) (cache.SharedIndexInformer, error)) *Set {
	return &Set{
		Add: add, Start: func() { factory.Start(ctx) }, Stop: factory.Shutdown,
		Wait: func(ctx context.Context) error { return factory.WaitForSync(ctx) },
	}
}
