package embedded_test

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func definitions(t *testing.T, cfg *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client(t, cfg) // closes the connections of this configuration at the end
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// untilCreatable returns the time for which an API server still delays creations.
func untilCreatable(t *testing.T, crd *unstructured.Unstructured) time.Duration {
	t.Helper()
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if fields := c.(map[string]any); fields["type"] == "Established" {
			since, err := time.Parse(time.RFC3339, fields["lastTransitionTime"].(string))
			if err != nil {
				t.Fatal(err)
			}
			return time.Until(since.Add(2 * time.Second))
		}
	}
	t.Fatal("the CRD has no condition Established")
	return 0
}

func TestServer_ResetDeletesCRDsAndObjects(t *testing.T) {
	server := start(t)
	crds := []*unstructured.Unstructured{crd(t)}
	for i := range 4 {
		another := crd(t)
		plural := fmt.Sprintf("widget%ds", i)
		another.SetName(plural + ".example.com")
		names := map[string]any{"plural": plural, "kind": fmt.Sprintf("Widget%d", i)}
		if err := unstructured.SetNestedMap(another.Object, names, "spec", "names"); err != nil {
			t.Fatal(err)
		}
		crds = append(crds, another)
	}
	if err := server.InstallCRDs(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
	widgets := client(t, server.Config()).Namespace("ns")
	create(t, widgets, "a", "b")
	w, err := widgets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: latest(t, widgets)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	begun := time.Now()
	if err := server.Reset(t.Context()); err != nil {
		t.Fatalf("Reset: %v", err)
	}
	t.Logf("Reset with %d CRDs took %v", len(crds), time.Since(begun).Round(time.Millisecond))

	left, err := definitions(t, server.Config()).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("CRDs after Reset: %v, %v", left, err)
	}
	if _, err := widgets.List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("list after Reset: %v, want NotFound", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	if groups, err := served.ServerGroups(); err != nil || len(groups.Groups) != 1 {
		t.Errorf("groups in discovery after Reset: %v, %v", groups, err)
	}
	wantNames(t, "a watch", w, watch.Deleted, "a", "b")

	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatalf("InstallCRDs after Reset: %v", err)
	}
	if list, err := widgets.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("objects of a CRD that was installed again: %v, %v", list, err)
	}
	create(t, widgets, "c")
}

func TestServer_ResetObjectsKeepsCRDs(t *testing.T) {
	server := start(t)
	if err := server.InstallCRDs(t.Context(), crd(t)); err != nil {
		t.Fatal(err)
	}
	widgets := client(t, server.Config()).Namespace("ns")
	create(t, widgets, "a", "b")
	w, err := widgets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: latest(t, widgets)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	begun := time.Now()
	if err := server.ResetObjects(t.Context()); err != nil {
		t.Fatalf("ResetObjects: %v", err)
	}
	t.Logf("ResetObjects took %v", time.Since(begun).Round(time.Millisecond))
	for _, from := range []string{"", "0"} {
		if list, err := widgets.List(t.Context(), metav1.ListOptions{ResourceVersion: from}); err != nil || len(list.Items) > 0 {
			t.Errorf("list from resource version %q: %v, %v", from, list, err)
		}
	}
	create(t, widgets, "c")
	wantNames(t, "a watch", w, watch.Deleted, "a", "b")
	wantNames(t, "a watch", w, watch.Added, "c")
}

// create creates widgets with a finalizer, which does not prevent a reset.
func create(t *testing.T, widgets dynamic.ResourceInterface, names ...string) {
	t.Helper()
	for _, name := range names {
		obj := widget(name)
		obj.SetFinalizers([]string{"example.com/never-removed"})
		if _, err := widgets.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatalf("create %s: %v", name, err)
		}
	}
}

func latest(t *testing.T, widgets dynamic.ResourceInterface) string {
	t.Helper()
	list, err := widgets.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.GetResourceVersion()
}
