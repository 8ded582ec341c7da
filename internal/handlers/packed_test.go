package handlers

import (
	"reflect"
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

type movedPacked struct {
	cache.TypedResourceEventHandlerFuncs[*packed.Object]

	moved []any
}

func (m *movedPacked) OnMoved(obj any) { m.moved = append(m.moved, obj) }

// OnMoved gets what OnDelete would have got.
func TestOfPacked_OnMovedHasTheArgumentOfOnDelete(t *testing.T) {
	tree := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
	object, err := packed.NewPacker().Pack(tree)
	if err != nil {
		t.Fatal(err)
	}
	handler := &movedPacked{}
	of := OfPacked(handler)
	unknown := cache.DeletedFinalStateUnknown{Key: "a", Obj: object}
	for _, obj := range []any{object, tree, unknown} { // an object that is not packed is not the handler's
		of.(MovedHandler).OnMoved(obj)
	}
	want := []any{
		cache.DeletedObject[*packed.Object]{OptionalObj: object},
		cache.DeletedObject[*packed.Object]{OptionalObj: object, FinalStateUnknown: &unknown},
	}
	if !reflect.DeepEqual(handler.moved, want) {
		t.Errorf("%+v, want %+v", handler.moved, want)
	}
}
