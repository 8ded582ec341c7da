package systems

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// informer is a Cache that is an informer on unstructured objects.
type informer struct {
	store cache.Store
	sync  func(context.Context) error
	stop  func(context.Context) error
}

func (i *informer) WaitForSync(ctx context.Context) error { return i.sync(ctx) }

func (i *informer) Stop(ctx context.Context) error { return i.stop(ctx) }

func (i *informer) Len(context.Context) (int, error) { return len(i.store.ListKeys()), nil }

func (i *informer) Object(_ context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	key := cache.NewObjectName(namespace, name).String()
	obj, found, err := i.store.GetByKey(key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%s is not cached", key)
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s is cached as a %T", key, obj)
	}
	return u, nil
}
