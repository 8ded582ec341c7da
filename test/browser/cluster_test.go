package browser_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

var (
	blocks = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}
	pools  = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ippools"}
	certs  = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	apps   = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}
	routes = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}
)

func newCluster() *fakecluster.Cluster {
	return fakecluster.New(
		fakecluster.Type{GVR: blocks, Kind: "IPAMBlock"},
		fakecluster.Type{GVR: pools, Kind: "IPPool"},
		fakecluster.Type{GVR: certs, Kind: "Certificate", Namespaced: true},
		fakecluster.Type{GVR: routes, Kind: "HTTPRoute", Namespaced: true},
	)
}

// newFactory returns a factory on cluster, with discovery.
func newFactory(t *testing.T, cluster *fakecluster.Cluster) *dynamicinformer.Factory {
	t.Helper()
	resolver, err := discovery.NewFromDiscovery(cluster.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	f, err := dynamicinformer.New(cluster, dynamicinformer.WithDiscovery(resolver))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func shutdown(t *testing.T, f *dynamicinformer.Factory) {
	t.Helper()
	if err := f.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

func acquire(t *testing.T, f *dynamicinformer.Factory, gvr schema.GroupVersionResource, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
	t.Helper()
	l, err := f.Acquire(t.Context(), gvr, append(opts, dynamicinformer.WithAllowAbsent())...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// create creates n objects.
func create(t *testing.T, cluster *fakecluster.Cluster, gvr schema.GroupVersionResource, namespace string, n int) {
	t.Helper()
	for i := range n {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetName(fmt.Sprintf("object-%d-%d", i, len(cluster.Requests("create", gvr))))
		if _, err := cluster.Resource(gvr).Namespace(namespace).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
