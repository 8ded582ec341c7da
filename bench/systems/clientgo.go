package systems

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicclient"
)

// openClientGo opens what users of client-go have if they change nothing.
func openClientGo(ctx context.Context, target Target) (Cache, error) {
	return openWithTransform(ctx, target, nil)
}

// openStripped is the same with the usual remedy.
func openStripped(ctx context.Context, target Target) (Cache, error) {
	return openWithTransform(ctx, target, stripManagedFields)
}

// openClientGoFast is client-go's factory on gvrkit's client.
func openClientGoFast(ctx context.Context, target Target) (Cache, error) {
	client, err := dynamicclient.New(target.Config)
	if err != nil {
		return nil, err
	}
	return openFactory(ctx, target, client, nil)
}

func openWithTransform(ctx context.Context, target Target, transform cache.TransformFunc) (Cache, error) {
	client, err := dynamic.NewForConfig(target.Config)
	if err != nil {
		return nil, err
	}
	return openFactory(ctx, target, client, transform)
}

func openFactory(ctx context.Context, target Target, client dynamic.Interface, transform cache.TransformFunc) (Cache, error) {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	inf := factory.ForResource(target.GVR).Informer()
	if transform != nil {
		if err := inf.SetTransform(transform); err != nil {
			return nil, err
		}
	}
	if _, err := inf.AddEventHandler(target.Handler); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	return &informer{
		store: inf.GetStore(),
		sync: func(ctx context.Context) error {
			if !factory.WaitForCacheSync(ctx.Done())[target.GVR] {
				return fmt.Errorf("the informer has not synced: %w", context.Cause(ctx))
			}
			return nil
		},
		stop: func(context.Context) error {
			cancel()
			factory.Shutdown()
			return nil
		},
	}, nil
}

// stripManagedFields is a transform that takes managedFields out of an object.
func stripManagedFields(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		// Not by SetManagedFields, which builds what it then throws away.
		if metadata, ok := u.Object["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
		}
	}
	return obj, nil
}
