package informers

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// world is a cluster, and an informer by hand on its widgets.
type world struct {
	*fakecluster.Cluster

	informer *Informer
	heard    []string
}

// newWorld returns one that has CRDs. It ends with the test's bubble.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: fakecluster.New(fakecluster.Type{GVR: definitions, Kind: "CustomResourceDefinition"})}
	ctx, cancel := context.WithCancel(t.Context())
	set := newByHand(ctx, w)
	t.Cleanup(func() {
		cancel()
		if err := set.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	var err error
	if w.informer, err = set.Arm(ctx, widgets); err != nil {
		t.Fatal(err)
	}
	hear := func(what string, obj any) {
		name, err := cache.DeletionHandlingObjectToName(obj)
		if err != nil {
			t.Error(err)
		}
		w.heard = append(w.heard, what+" "+name.Name)
	}
	if err := w.informer.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { hear("add", obj) }, DeleteFunc: func(obj any) { hear("delete", obj) },
	}); err != nil {
		t.Fatal(err)
	}
	return w
}

// define creates a CRD, with the type if it is to be established.
func (w *world) define(t *testing.T, name, established string) {
	t.Helper()
	w.Serve(fakecluster.Type{GVR: widgets, Kind: "Widget"})
	w.create(t, definitions, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": established}}},
	}})
}

func (w *world) createWidget(t *testing.T, name string) {
	t.Helper()
	w.create(t, widgets, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
	}})
}

func (w *world) create(t *testing.T, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) {
	t.Helper()
	if _, err := w.Resource(gvr).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// undefine deletes the CRD, whose objects go without a word.
func (w *world) undefine(t *testing.T) {
	t.Helper()
	if err := w.Resource(definitions).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Withdraw(widgets)
	synctest.Wait()
}

// is reports whether what f waits for is so now.
func is(t *testing.T, f func(context.Context) error) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f(ctx) }()
	synctest.Wait()
	cancel()
	return <-done == nil
}

func TestByHand_HearsOfATypeThatGoesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define(t, "widgets.example.com", "True")
		w.createWidget(t, "a")
		if !is(t, w.informer.Synced) || is(t, w.informer.Gone) {
			t.Error("the type is there, and the informer does not know")
		}
		w.undefine(t)
		if is(t, w.informer.Synced) || !is(t, w.informer.Gone) {
			t.Error("the type has gone, and the informer does not know")
		}
		w.define(t, "widgets.example.com", "True")
		w.createWidget(t, "b")
		if !is(t, w.informer.Synced) {
			t.Error("the type is back, and the informer does not know")
		}
		if diff := cmp.Diff([]string{"add a", "delete a", "add b"}, w.heard); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
	})
}

func TestByHand_TellsOfNoDeletionTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define(t, "widgets.example.com", "True")
		w.createWidget(t, "a")
		if err := w.Resource(widgets).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.undefine(t)
		if diff := cmp.Diff([]string{"add a", "delete a"}, w.heard); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
	})
}

func TestByHand_AsksForNothingBeforeItsOwnCRDIsEstablished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define(t, "gadgets.example.com", "True")
		w.define(t, "widgets.example.com", "False")
		if lists, watches := w.Requests("list", widgets), w.Requests("watch", widgets); len(lists)+len(watches) > 0 {
			t.Errorf("it asks: %v, %v", lists, watches)
		}
	})
}

func TestByHand_OneHandlerBeforeItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.informer.Handle(cache.ResourceEventHandlerFuncs{}); err == nil {
			t.Error("it takes another handler, which it would not call")
		}
	})
}

func TestNamed_TellsWhatThereIs(t *testing.T) {
	for _, want := range All() {
		if got, err := Named(want.Name); err != nil || got.Name != want.Name || got.About == "" {
			t.Errorf("%s: %+v, %v", want.Name, got, err)
		}
	}
	if _, err := Named("kubectl"); err == nil {
		t.Error("there is a system that is not there")
	}
}
