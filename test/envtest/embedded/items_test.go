package embedded_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// While such an object is in etcd, the API server responds with 500 to its GET, and with
// 429 to each list and watch of its type.
func TestServer_RejectsTopLevelItemsAndWatchesContinue(t *testing.T) {
	server := start(t)
	anyFields := crd(t)
	version := anyFields.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true,
	}}
	if err := server.InstallCRDs(t.Context(), anyFields); err != nil {
		t.Fatal(err)
	}
	widgets := client(t, server.Config()).Namespace("ns")
	before, err := widgets.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer before.Stop()

	first, err := widgets.Create(t.Context(), widget("first"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, items := range map[string]any{"a list": []any{map[string]any{"name": "a"}}, "a map": map[string]any{"a": "b"}} {
		created := widget("with-items")
		created.Object["items"] = items
		_, err := widgets.Create(t.Context(), created, metav1.CreateOptions{})
		wantRejected(t, "create with "+name, err)
		updated := first.DeepCopy()
		updated.Object["items"] = items
		_, err = widgets.Update(t.Context(), updated, metav1.UpdateOptions{})
		wantRejected(t, "update with "+name, err)
	}
	below := widget("last")
	if err := unstructured.SetNestedSlice(below.Object, []any{"a"}, "spec", "items"); err != nil {
		t.Fatal(err)
	}
	if _, err := widgets.Create(t.Context(), below, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create with spec.items: %v", err)
	}
	wantNames(t, "a watch that was open", before, watch.Added, "first", "last")

	// All objects and then changes, as for an informer.
	initial := true
	after, err := widgets.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Stop()
	wantNames(t, "a watch that begins with all objects", after, watch.Added, "first", "last")
}

func wantRejected(t *testing.T, request string, err error) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "items: Forbidden") {
		t.Errorf("%s: %v, want Invalid because of items", request, err)
	}
}

func wantNames(t *testing.T, which string, w watch.Interface, kind watch.EventType, names ...string) {
	t.Helper()
	for _, want := range names {
		select {
		case event, ok := <-w.ResultChan():
			obj, _ := event.Object.(*unstructured.Unstructured)
			if !ok || obj == nil || event.Type != kind || obj.GetName() != want {
				t.Fatalf("%s: %s %v (open %t), want %s %q", which, event.Type, event.Object, ok, kind, want)
			}
		case <-t.Context().Done():
			t.Fatalf("%s: no event, want %s %q", which, kind, want)
		}
	}
}
