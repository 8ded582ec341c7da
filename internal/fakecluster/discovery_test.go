package fakecluster_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// discoverer returns the cluster's discovery client.
func discoverer(cluster *fakecluster.Cluster) discovery.DiscoveryInterfaceWithContext {
	return discovery.ToDiscoveryInterfaceWithContext(cluster.Discovery())
}

func version(gv schema.GroupVersion) metav1.GroupVersionForDiscovery {
	return metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
}

func TestDiscovery_GroupsAndTheirVersions(t *testing.T) {
	second := widgetType
	second.GVR.Version = "v1beta1"
	more := widgetType
	more.GVR.Resource = "gadgets"
	cluster := fakecluster.New(widgetType, second, more, blockType)
	got, err := discoverer(cluster).ServerGroupsWithContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	calico, v1, beta := version(blocks.GroupVersion()), version(widgets.GroupVersion()), version(second.GVR.GroupVersion())
	want := &metav1.APIGroupList{Groups: []metav1.APIGroup{
		{Name: blocks.Group, Versions: []metav1.GroupVersionForDiscovery{calico}, PreferredVersion: calico},
		{Name: widgets.Group, Versions: []metav1.GroupVersionForDiscovery{v1, beta}, PreferredVersion: v1},
	}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestDiscovery_ResourcesOfAGroupVersion(t *testing.T) {
	readOnly := fakecluster.Type{GVR: widgets.GroupVersion().WithResource("gadgets"), Kind: "Gadget", Verbs: []string{"get", "list"}}
	otherVersion := widgetType
	otherVersion.GVR.Version = "v2"
	cluster := fakecluster.New(widgetType, readOnly, otherVersion, blockType)
	got, err := discoverer(cluster).ServerResourcesForGroupVersionWithContext(t.Context(), "example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	want := &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
		{Name: "gadgets", Kind: "Gadget", Verbs: metav1.Verbs{"get", "list"}},
		{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"create", "delete", "get", "list", "update", "watch"}},
	}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func TestDiscovery_GroupVersionThatIsNotServedIs404(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	for _, gv := range []string{"example.com/v2", "other.com/v1", "v1"} {
		if _, err := discoverer(cluster).ServerResourcesForGroupVersionWithContext(t.Context(), gv); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v, want 404", gv, err)
		}
	}
	if _, err := discoverer(cluster).ServerResourcesForGroupVersionWithContext(t.Context(), "a/b/c"); !apierrors.IsBadRequest(err) {
		t.Errorf("a/b/c: %v, want BadRequest", err)
	}
}

func TestDiscovery_HasTypesThatAreServedLater(t *testing.T) {
	cluster := fakecluster.New()
	client := discoverer(cluster)
	if got, err := client.ServerGroupsWithContext(t.Context()); err != nil || len(got.Groups) != 0 {
		t.Errorf("groups of an empty cluster: %v, %v", got, err)
	}
	cluster.Serve(widgetType)
	if got, err := client.ServerGroupsWithContext(t.Context()); err != nil || len(got.Groups) != 1 {
		t.Errorf("groups: %v, %v; want one", got, err)
	}
	if _, err := client.ServerResourcesForGroupVersionWithContext(t.Context(), "example.com/v1"); err != nil {
		t.Errorf("resources: %v", err)
	}
}

func TestDiscovery_IsCountedAndIntercepted(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	client := discoverer(cluster)
	down := apierrors.NewServiceUnavailable("down")
	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.Verb == fakecluster.VerbDiscover {
			return down
		}
		return nil
	})
	if _, err := client.ServerGroupsWithContext(t.Context()); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("groups: %v, want the interceptor's error", err)
	}
	for range 2 {
		if _, err := client.ServerResourcesForGroupVersionWithContext(t.Context(), "example.com/v1"); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("resources: %v, want the interceptor's error", err)
		}
	}
	list(t, in(cluster, ""), metav1.ListOptions{}) // other requests are not affected
	if got := len(cluster.Requests(fakecluster.VerbDiscover, schema.GroupVersionResource{})); got != 1 {
		t.Errorf("requests about groups = %d, want 1", got)
	}
	if got := len(cluster.Requests(fakecluster.VerbDiscover, widgets.GroupVersion().WithResource(""))); got != 2 {
		t.Errorf("requests about resources = %d, want 2", got)
	}
}
