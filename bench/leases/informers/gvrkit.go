package informers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// openGVRKit opens gvrkit's factory, with discovery.
func openGVRKit(ctx context.Context, cfg *rest.Config) (*Set, error) {
	factory, err := dynamicinformer.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx)
	return &Set{
		Arm: func(ctx context.Context, gvr schema.GroupVersionResource) (*Informer, error) {
			lease, err := factory.Acquire(ctx, gvr, dynamicinformer.AllowAbsent())
			if err != nil {
				return nil, err
			}
			return &Informer{
				Handle: func(handler cache.ResourceEventHandler) error {
					_, err := lease.AddEventHandler(handler)
					return err
				},
				Synced: lease.WaitForSync,
				Gone:   func(ctx context.Context) error { return notServed(ctx, lease) },
			}, nil
		},
		Stop: factory.Shutdown,
	}, nil
}

// notServed waits until the type of lease is not served.
func notServed(ctx context.Context, lease *dynamicinformer.Lease) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var last status.Informer
	for last = range lease.Watch(ctx) {
		if last.State == status.StateNotServed {
			return nil
		}
	}
	return fmt.Errorf("it is %s: %w", last.State, context.Cause(ctx))
}
