package typed

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// packing is a client of packed objects.
type packing struct{ source.Client }

// Packing returns a client of the packed objects of client, which has the option of package internal/packed. What is not
// ordinary is unstructured: the source packs it.
func Packing(client dynamic.Interface) source.Client { return packing{source.Unstructured(client)} }

// List implements source.Client.
func (c packing) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	response, err := c.Client.List(ctx, gvr, namespace, opts)
	if err != nil {
		return nil, err
	}
	list := response.(*unstructured.UnstructuredList)
	items, ok := wire.Take(list)
	if !ok {
		return list, nil
	}
	return &internalversion.List{
		ListMeta: metav1.ListMeta{
			ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue(), RemainingItemCount: list.GetRemainingItemCount(), ShardInfo: shardInfo(list),
		},
		Items: items,
	}, nil
}

// shardInfo returns what list says about the selector of a shard.
func shardInfo(list *unstructured.UnstructuredList) *metav1.ShardInfo {
	selector, found, err := unstructured.NestedString(list.Object, "metadata", "shardInfo", "selector")
	if !found || err != nil {
		return nil
	}
	return &metav1.ShardInfo{Selector: selector}
}
