package systems

import (
	"context"
	"slices"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// withoutManagedFields leaves managedFields out while decoding.
var withoutManagedFields = dynamicinformer.WithClientOptions(dynamicclient.WithoutManagedFields())

// withoutSharing gives each object maps and slices of its own.
var withoutSharing = dynamicinformer.WithClientOptions(dynamicclient.WithoutSharing())

// openGVRKit returns what opens gvrkit's factory with opts.
func openGVRKit(opts ...dynamicinformer.Option) func(context.Context, Target) (Cache, error) {
	return func(ctx context.Context, target Target) (Cache, error) {
		all := slices.Clip(opts)
		if !target.Discovery {
			all = append(all, dynamicinformer.WithDiscovery(nil))
		}
		factory, err := dynamicinformer.NewForConfig(target.Config, all...)
		if err != nil {
			return nil, err
		}
		inf := factory.ForResource(target.GVR).Informer()
		if _, err := inf.AddEventHandler(target.Handler); err != nil {
			return nil, err
		}
		factory.Start(ctx)
		return &informer{
			store: inf.GetStore(),
			sync:  func(ctx context.Context) error { return factory.WaitForSync(ctx) },
			stop:  factory.Shutdown,
		}, nil
	}
}
