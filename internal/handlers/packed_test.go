package handlers

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// A transform may give one version of an object a form that is not packed.
func TestOfPacked_AnObjectThatChangesItsFormIsAddedAndDeleted(t *testing.T) {
	tree := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
	object, err := packed.NewPacker().Pack(tree)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	handler := OfPacked(cache.TypedResourceEventHandlerFuncs[*packed.Object]{
		AddFunc:    func(obj *packed.Object) { events = append(events, "add "+obj.GetName()) },
		UpdateFunc: func(_, obj *packed.Object) { events = append(events, "update "+obj.GetName()) },
		DeleteFunc: func(deleted cache.DeletedObject[*packed.Object]) {
			events = append(events, "delete "+deleted.OptionalObj.GetName())
		},
	})
	handler.OnUpdate(tree, tree)
	handler.OnUpdate(tree, object)
	handler.OnUpdate(object, object)
	handler.OnUpdate(object, tree)
	if want := []string{"add a", "update a", "delete a"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}
