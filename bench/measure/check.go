package measure

import (
	"context"
	"fmt"
	"reflect"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/bench/systems"
)

// checkPage is how many objects are compared at a time.
const checkPage = 500

// check compares all cached objects with what client-go's dynamic client makes of
// what the server sends.
func (r *run) check(ctx context.Context) error {
	client, err := dynamic.NewForConfig(r.job.Server.Config())
	if err != nil {
		return err
	}
	resource, opts, seen := client.Resource(r.kind.GVR), metav1.ListOptions{Limit: checkPage}, 0
	for {
		page, err := resource.List(ctx, opts)
		if err != nil {
			return fmt.Errorf("list to check against: %w", err)
		}
		for i := range page.Items {
			if err := compare(ctx, r.system, r.cache, &page.Items[i]); err != nil {
				return err
			}
		}
		seen += len(page.Items)
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	cached, err := r.cache.Len(ctx)
	if err != nil {
		return err
	}
	if cached != seen || seen != r.job.Objects {
		return fmt.Errorf("%d objects are cached and the server has %d, of %d that it was given", cached, seen, r.job.Objects)
	}
	return nil
}

// compare looks up one object in the cache. It changes want.
func compare(ctx context.Context, system systems.System, cache systems.Cache, want *unstructured.Unstructured) error {
	got, err := cache.Object(ctx, want.GetNamespace(), want.GetName())
	if err != nil {
		return err
	}
	if system.Drops {
		unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
	}
	if reflect.DeepEqual(want.Object, got.Object) {
		return nil
	}
	return fmt.Errorf("%s: %s is cached wrongly (-want +got):\n%s", system.Name, want.GetNamespace()+"/"+want.GetName(), cmp.Diff(want.Object, got.Object))
}
