package informers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// openClientGo opens client-go's factory. It knows of no type whether it is there.
func openClientGo(ctx context.Context, cfg *rest.Config) (*Set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	return &Set{
		Arm: func(_ context.Context, gvr schema.GroupVersionResource) (*Informer, error) {
			informer := factory.ForResource(gvr).Informer()
			factory.Start(ctx.Done())
			return &Informer{
				Handle: func(handler cache.ResourceEventHandler) error {
					_, err := informer.AddEventHandler(handler)
					return err
				},
				Synced: func(ctx context.Context) error { return await(ctx, informer.HasSyncedChecker().Done()) },
			}, nil
		},
		Stop: func(context.Context) error {
			factory.Shutdown()
			return nil
		},
	}, nil
}

// await waits until done is closed.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
