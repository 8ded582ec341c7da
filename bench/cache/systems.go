package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// system is one way to cache a resource.
type system struct {
	harness.Contestant

	stripped bool // its objects have no managedFields
	// open starts a cache of the target. It runs until ctx ends.
	open func(ctx context.Context, t target) (*opened, error)
}

// target is the resource to cache. Its server has no discovery.
type target struct {
	cfg     *rest.Config
	kind    objects.Kind
	handler cache.ResourceEventHandler
}

// opened is a running cache.
type opened struct {
	store cache.Store
	// wait waits until the cache has synced, and stop, once the context of open has ended,
	// until nothing of it runs.
	wait, stop func(ctx context.Context) error
}

func systems() []system {
	add := func(name, about string, stripped bool, open func(context.Context, target) (*opened, error), env ...string) system {
		return system{harness.Contestant{Name: name, About: about, Env: env}, stripped, open}
	}
	const listOnly = "KUBE_FEATURE_WatchListClient=false"
	withoutManagedFields := dynamicinformer.WithClientOptions(dynamicclient.WithoutManagedFields())
	return []system{
		add("client-go", "client-go's dynamicinformer with defaults", false, openClientGo(nil)),
		add("client-go-list", "the same without watch-list", false, openClientGo(nil), listOnly),
		add("client-go-stripped", "the same with a transform that deletes managedFields", true, openClientGo(stripManagedFields)),
		add("controller-runtime", "controller-runtime's cache of unstructured objects with defaults", false, openControllerRuntime),
		add("gvrkit", "gvrkit's dynamicinformer with defaults", false, openGVRKit()),
		add("gvrkit-list", "the same without watch-list", false, openGVRKit(), listOnly),
		add("gvrkit-stripped", "the same with WithoutManagedFields", true, openGVRKit(withoutManagedFields)),
	}
}

func openClientGo(transform cache.TransformFunc) func(context.Context, target) (*opened, error) {
	return func(ctx context.Context, t target) (*opened, error) {
		client, err := dynamic.NewForConfig(t.cfg)
		if err != nil {
			return nil, err
		}
		factory := upstream.NewDynamicSharedInformerFactory(client, 0)
		informer := factory.ForResource(t.kind.GVR).Informer()
		if transform != nil {
			if err := informer.SetTransform(transform); err != nil {
				return nil, err
			}
		}
		if _, err := informer.AddEventHandler(t.handler); err != nil {
			return nil, err
		}
		factory.Start(ctx.Done())
		return &opened{
			store: informer.GetStore(),
			wait: func(ctx context.Context) error {
				if !factory.WaitForCacheSync(ctx.Done())[t.kind.GVR] {
					return fmt.Errorf("the informer has not synced: %w", context.Cause(ctx))
				}
				return nil
			},
			stop: func(context.Context) error {
				factory.Shutdown()
				return nil
			},
		}, nil
	}
}

// stripManagedFields deletes managedFields without decoding them.
func stripManagedFields(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if metadata, ok := u.Object["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
		}
	}
	return obj, nil
}

func openGVRKit(opts ...dynamicinformer.Option) func(context.Context, target) (*opened, error) {
	return func(ctx context.Context, t target) (*opened, error) {
		factory, err := dynamicinformer.NewForConfig(t.cfg, append(opts, dynamicinformer.WithDiscovery(nil))...)
		if err != nil {
			return nil, err
		}
		informer := factory.ForResource(t.kind.GVR).Informer()
		if _, err := informer.AddEventHandler(t.handler); err != nil {
			return nil, err
		}
		factory.Start(ctx)
		return &opened{
			store: informer.GetStore(), stop: factory.Shutdown,
			wait: func(ctx context.Context) error { return factory.WaitForSync(ctx) },
		}, nil
	}
}

func openControllerRuntime(ctx context.Context, t target) (*opened, error) {
	ctrllog.SetLogger(logr.Discard()) // it complains without a logger
	scope := meta.RESTScopeRoot
	if t.kind.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(t.kind.GVK, t.kind.GVR, t.kind.GVR, scope)
	c, err := ctrlcache.New(t.cfg, ctrlcache.Options{Mapper: mapper})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	like := &unstructured.Unstructured{}
	like.SetGroupVersionKind(t.kind.GVK)
	informer, err := c.GetInformer(ctx, like, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	if _, err := informer.AddEventHandler(t.handler); err != nil {
		return nil, err
	}
	shared, ok := informer.(cache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("controller-runtime has an informer of type %T", informer)
	}
	return &opened{
		store: shared.GetStore(),
		wait: func(ctx context.Context) error {
			if !c.WaitForCacheSync(ctx) {
				return fmt.Errorf("the cache has not synced: %w", context.Cause(ctx))
			}
			return nil
		},
		stop: func(ctx context.Context) error {
			select {
			case err := <-ended:
				return err
			case <-ctx.Done():
				return errors.New("the cache does not stop")
			}
		},
	}, nil
}
