package sharded_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/sharding"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
)

// gate is the feature gate of API servers that select by shards.
const gate = "ShardedListAndWatch"

var blocks = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}

// startEmbedded starts an embedded server. A CRD stands in for the Leases of kube-apiserver.
func startEmbedded(t *testing.T, selects bool) *rest.Config {
	t.Helper()
	server := fixture.StartEmbedded(t, embedded.WithFeatureGates(map[string]bool{gate: selects}))
	if err := server.InstallCRDFiles(t.Context(), blocksManifest, "../../../examples/manager/crds/leases.yaml"); err != nil {
		t.Fatal(err)
	}
	return server.Config()
}

const blocksManifest = "../../../examples/ipamblock/crd.yaml"

// startKubeAPIServer starts a kube-apiserver and its etcd.
func startKubeAPIServer(t *testing.T, selects bool) *rest.Config {
	t.Helper()
	environment := fixture.StartKubeAPIServer(t, fmt.Sprintf("feature-gates=%s=%t", gate, selects))
	if err := embedded.InstallCRDFiles(t.Context(), environment.Config, blocksManifest); err != nil {
		t.Fatal(err)
	}
	return environment.Config
}

// newBlock returns an IPAMBlock with 8 free addresses, as of a pool with blockSize 29. With the 64 of Calico's default, two cores do not do 500
// writes per second.
func newBlock(n int) *unstructured.Unstructured {
	free := make([]any, 8)
	for i := range free {
		free[i] = int64(i)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"cidr": fmt.Sprintf("10.%d.%d.%d/29", n>>13, n>>5&255, n&31<<3), "affinity": fmt.Sprintf("host:node-%d", n), "strictAffinity": false,
		"deleted": false, "allocations": make([]any, len(free)), "unallocated": free, "attributes": []any{}, "sequenceNumber": int64(0),
	}}}
	obj.SetGroupVersionKind(blocks.GroupVersion().WithKind("IPAMBlock"))
	obj.SetName(fmt.Sprintf("block-%d", n))
	return obj
}

// create creates objects, and records them in the ledger.
func create(ctx context.Context, client dynamic.Interface, l *ledger, objects int) error {
	numbers := make(chan int)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for n := range numbers {
				obj, err := client.Resource(blocks).Create(ctx, newBlock(n), metav1.CreateOptions{})
				if err != nil {
					cancel(err)
					return
				}
				l.wrote(n, obj.GetUID(), obj.GetResourceVersion())
			}
		})
	}
	for n := range objects {
		select {
		case numbers <- n:
		case <-ctx.Done():
		}
	}
	close(numbers)
	workers.Wait()
	return context.Cause(ctx)
}

// A server with the feature selects the objects of a list of custom resources. One without it ignores the selector, and sends all.
func checkSelector(t *testing.T, client dynamic.Interface, l *ledger, selects bool) {
	t.Helper()
	shard, err := sharding.Static(1, 4)
	if err != nil {
		t.Fatal(err)
	}
	version := ""
	for _, name := range []string{"a consistent list", "a list of the watch cache"} {
		list, err := client.Resource(blocks).List(t.Context(), metav1.ListOptions{ShardSelector: shard.Selector(), ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		version = list.GetResourceVersion()
		got := map[string]bool{}
		for _, item := range list.Items {
			got[string(item.GetUID())] = true
		}
		for uid := range l.last() {
			if want := !selects || shard.Owns(uid); got[string(uid)] != want {
				t.Errorf("%s has %s: %t, want %t, with %s=%t", name, uid, !want, want, gate, selects)
				break
			}
		}
		if selects == (len(got) == *objects) {
			t.Errorf("%s has %d of %d objects, with %s=%t", name, len(got), *objects, gate, selects)
		}
	}
}
