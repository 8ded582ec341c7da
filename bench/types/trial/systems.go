package trial

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

// System is one way to start.
type System struct {
	Name string
	// About says what it is, in a few words.
	About string

	// start makes informers on types, and starts them. They run until ctx ends.
	start func(ctx context.Context, cfg *rest.Config, types []schema.GroupVersionResource) (*started, error)
}

// started is a system at work.
type started struct {
	informers []cache.SharedIndexInformer
	// wait waits until all have synced, and stop until all have ended.
	wait, stop func(ctx context.Context) error
}

// The names of systems.
const (
	ClientGo    = "client-go"
	Acquire     = "Acquire"
	ForResource = "ForResource"
	Alone       = "no discovery"
)

// All returns the systems that there are.
func All() []System {
	return []System{
		{ClientGo, "dynamicinformer: ForResource of each type, Start, WaitForCacheSync, which looks each 0.1 s", startClientGo},
		{Acquire, "gvrkit's NewForConfig: Start, Acquire of each type, WaitForSync", startGVRKit(true)},
		{ForResource, "gvrkit's NewForConfig: ForResource of each type, Start, WaitForSync", startGVRKit(false)},
		{Alone, "the same with WithDiscovery(nil)", startGVRKit(false, dynamicinformer.WithDiscovery(nil))},
	}
}

func startClientGo(ctx context.Context, cfg *rest.Config, types []schema.GroupVersionResource) (*started, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory := upstream.NewDynamicSharedInformerFactory(client, 0)
	s := &started{
		wait: func(ctx context.Context) error {
			for gvr, synced := range factory.WaitForCacheSync(ctx.Done()) {
				if !synced {
					return fmt.Errorf("%v has not synced: %w", gvr, context.Cause(ctx))
				}
			}
			return nil
		},
		stop: func(context.Context) error {
			factory.Shutdown()
			return nil
		},
	}
	for _, gvr := range types {
		s.informers = append(s.informers, factory.ForResource(gvr).Informer())
	}
	factory.Start(ctx.Done())
	return s, nil
}

// startGVRKit returns what starts a factory of gvrkit's, with leases or without.
func startGVRKit(leases bool, opts ...dynamicinformer.Option) func(context.Context, *rest.Config, []schema.GroupVersionResource) (*started, error) {
	return func(ctx context.Context, cfg *rest.Config, types []schema.GroupVersionResource) (*started, error) {
		factory, err := dynamicinformer.NewForConfig(cfg, opts...)
		if err != nil {
			return nil, err
		}
		s := &started{wait: func(ctx context.Context) error { return factory.WaitForSync(ctx) }, stop: factory.Shutdown}
		if leases {
			factory.Start(ctx)
		}
		for _, gvr := range types {
			if !leases {
				s.informers = append(s.informers, factory.ForResource(gvr).Informer())
				continue
			}
			lease, err := factory.Acquire(ctx, gvr)
			if err != nil {
				return nil, errors.Join(err, factory.Shutdown(ctx))
			}
			s.informers = append(s.informers, lease.Informer())
		}
		factory.Start(ctx)
		return s, nil
	}
}
