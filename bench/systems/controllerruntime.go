package systems

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader is a Cache that is controller-runtime's.
type reader struct {
	ctrlcache.Cache

	gvk   schema.GroupVersionKind
	stop  context.CancelFunc
	ended <-chan error
}

// openControllerRuntime opens what a manager's client reads unstructured objects from.
func openControllerRuntime(ctx context.Context, target Target) (Cache, error) {
	var opts ctrlcache.Options
	if !target.Discovery {
		scope := meta.RESTScopeRoot
		if target.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.AddSpecific(target.GVK, target.GVR, target.GVR, scope)
		opts.Mapper = mapper
	}
	c, err := ctrlcache.New(target.Config, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()

	like := &unstructured.Unstructured{}
	like.SetGroupVersionKind(target.GVK)
	inf, err := c.GetInformer(ctx, like, ctrlcache.BlockUntilSynced(false))
	if err == nil {
		_, err = inf.AddEventHandler(target.Handler)
	}
	if err != nil {
		cancel()
		return nil, errors.Join(err, <-ended)
	}
	return &reader{Cache: c, gvk: target.GVK, stop: cancel, ended: ended}, nil
}

func (r *reader) WaitForSync(ctx context.Context) error {
	if !r.WaitForCacheSync(ctx) {
		return fmt.Errorf("the cache has not synced: %w", context.Cause(ctx))
	}
	return nil
}

func (r *reader) Object(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.gvk)
	return u, r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
}

func (r *reader) Len(ctx context.Context) (int, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(r.gvk.GroupVersion().WithKind(r.gvk.Kind + "List"))
	err := r.List(ctx, all, client.UnsafeDisableDeepCopy)
	return len(all.Items), err
}

func (r *reader) Stop(ctx context.Context) error {
	r.stop()
	select {
	case err := <-r.ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
