package fakecluster_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// Two types, one with namespaces and one without.
var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	blocks  = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}

	widgetType = fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}
	blockType  = fakecluster.Type{GVR: blocks, Kind: "IPAMBlock"}
)

// in returns the client of widgets in a namespace.
func in(cluster *fakecluster.Cluster, namespace string) dynamic.ResourceInterface {
	return cluster.Resource(widgets).Namespace(namespace)
}

// newObject returns an object with this color as a label, if color is not empty.
func newObject(name, color string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetName(name)
	if color != "" {
		obj.SetLabels(map[string]string{"color": color})
	}
	return obj
}

func create(t *testing.T, client dynamic.ResourceInterface, name, color string) *unstructured.Unstructured {
	t.Helper()
	obj, err := client.Create(t.Context(), newObject(name, color), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	return obj
}

func update(t *testing.T, client dynamic.ResourceInterface, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	updated, err := client.Update(t.Context(), obj, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("update %s: %v", obj.GetName(), err)
	}
	return updated
}

func remove(t *testing.T, client dynamic.ResourceInterface, name string) {
	t.Helper()
	if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete %s: %v", name, err)
	}
}

func list(t *testing.T, client dynamic.ResourceInterface, opts metav1.ListOptions) *unstructured.UnstructuredList {
	t.Helper()
	found, err := client.List(t.Context(), opts)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	return found
}

// keys returns the items of a list as namespace/name.
func keys(list *unstructured.UnstructuredList) []string {
	var found []string
	for _, item := range list.Items {
		found = append(found, item.GetNamespace()+"/"+item.GetName())
	}
	return found
}

// open opens a watch that ends with the test.
func open(t *testing.T, client dynamic.ResourceInterface, opts metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := client.Watch(t.Context(), opts)
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	t.Cleanup(w.Stop)
	return w
}

// openNow opens a watch without initial events.
func openNow(t *testing.T, client dynamic.ResourceInterface, opts metav1.ListOptions) watch.Interface {
	t.Helper()
	opts.ResourceVersion = list(t, client, metav1.ListOptions{}).GetResourceVersion()
	return open(t, client, opts)
}

// take returns the events that w can send now, which are all events before the next change
// of the cluster.
func take(w watch.Interface) []watch.Event {
	var events []watch.Event
	for len(events) < 1000 { // more than any test has; ends a watch that repeats events
		synctest.Wait()
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return append(events, watch.Event{Type: "CLOSED"})
			}
			events = append(events, event)
		default:
			return events
		}
	}
	return events
}

// seen returns the events of take as strings.
func seen(w watch.Interface) []string {
	var words []string
	for _, event := range take(w) {
		words = append(words, textOf(event))
	}
	return words
}

func textOf(event watch.Event) string {
	switch event.Type {
	case "CLOSED":
		return "CLOSED"
	case watch.Error:
		return "ERROR " + string(apierrors.ReasonForError(apierrors.FromObject(event.Object)))
	}
	obj, err := meta.Accessor(event.Object)
	if err != nil {
		return fmt.Sprintf("%s %T: %v", event.Type, event.Object, err)
	}
	if event.Type == watch.Bookmark {
		return fmt.Sprintf("BOOKMARK at %s, end of initial events: %q", obj.GetResourceVersion(), obj.GetAnnotations()[metav1.InitialEventsAnnotationKey])
	}
	return fmt.Sprintf("%s %s/%s", event.Type, obj.GetNamespace(), obj.GetName())
}
