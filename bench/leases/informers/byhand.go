package informers

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// openByHand opens what people write around client-go's factory: an informer on CRDs says
// when the informer on a type is to be stopped, and when a new one is to be started.
func openByHand(ctx context.Context, cfg *rest.Config) (*Set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return newByHand(ctx, client), nil
}

func newByHand(ctx context.Context, client dynamic.Interface) *Set {
	crds := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	var all []*restarted // by one goroutine
	return &Set{
		Arm: func(_ context.Context, gvr schema.GroupVersionResource) (*Informer, error) {
			r := newRestarted(ctx, client, gvr)
			informer := crds.ForResource(definitions).Informer()
			if _, err := informer.AddEventHandler(r.follower()); err != nil {
				return nil, err
			}
			crds.Start(ctx.Done())
			all = append(all, r)
			return &Informer{Handle: r.handle, Synced: r.synced, Gone: r.gone}, nil
		},
		Stop: func(context.Context) error {
			crds.Shutdown()
			for _, r := range all {
				r.stop()
			}
			return nil
		},
	}
}

// follower is the handler on CRDs.
func (r *restarted) follower() cache.ResourceEventHandler {
	see := func(obj any) {
		if crd, is := obj.(*unstructured.Unstructured); is && crd.GetDeletionTimestamp() == nil && established(crd) {
			r.start(crd.GetUID())
		}
	}
	return cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			name, err := cache.DeletionHandlingObjectToName(obj)
			return err == nil && name.Name == r.gvr.GroupResource().String()
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    see,
			UpdateFunc: func(_, obj any) { see(obj) },
			DeleteFunc: func(any) { r.stop() },
		},
	}
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, is := condition.(map[string]any); is && c["type"] == "Established" {
			return c["status"] == "True"
		}
	}
	return false
}
