// Package informers opens the informers that scenarios compare, those of client-go and of gvrkit,
// in one form.
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

// Set is the informers of one system.
type Set struct {
	// Add makes an informer on a type.
	Add func(ctx context.Context, gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error)
	// Start starts all informers that have not started.
	Start func()
	// Wait waits until all informers have synced.
	Wait func(ctx context.Context) error
	// Stop waits until nothing runs, once the context of Open has ended.
	Stop func(ctx context.Context) error
}

// Use opens a set on the server of cfg, and stops it after do.
func (open Open) Use(ctx context.Context, cfg *rest.Config, do func(ctx context.Context, set *Set) error) error {
	life, end := context.WithCancel(ctx)
	defer end()
	set, err := open(life, cfg)
	if err != nil {
		return err
	}
	err = do(life, set)
	end()
	return errors.Join(err, set.Stop(ctx))
}

// ClientGo opens client-go's factory.
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

// GVRKit opens gvrkit's factory, whose informers are made by ForResource.
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

// Leases opens gvrkit's factory and starts it. Its informers are those of leases.
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
