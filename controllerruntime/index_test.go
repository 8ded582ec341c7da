package controllerruntime

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caches are the options of default and of packed caches.
var caches = map[string][]Option{"default": nil, "packed": {WithPackedCaches()}}

// index indexes a field of the kind of object.
func (w *world) index(object client.Object, field string, values client.IndexerFunc) {
	w.Helper()
	if err := w.cache.IndexField(w.ctx, object, field, values); err != nil {
		w.Fatal(err)
	}
}

// count returns how many objects of the kind and form of object have a value of a field.
func (w *world) count(object client.Object, field, value string) (int, error) {
	var list client.ObjectList = &WidgetList{}
	if representationOf(object) == asUnstructured {
		list = &unstructured.UnstructuredList{}
		list.GetObjectKind().SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
	}
	err := w.cache.List(w.within(), list, client.MatchingFields{field: value})
	return meta.LenList(list), err
}

// frail is an index function that panics for the object b.
func frail(object client.Object) []string {
	if object.GetName() == "b" {
		panic("no spec")
	}
	return []string{"yes"}
}

// List sorts the fields by their names: the first one is looked up in its index.
func TestList_IndexFunctionThatPanicsLeavesOutTheObjectInAnyOrderOfFields(t *testing.T) {
	for name, options := range caches {
		t.Run(name, func(t *testing.T) {
			in(t, served{widgetType}, cache.Options{}, options, func(w *world) {
				w.create(widgets, "ns", "a", 1)
				w.create(widgets, "ns", "b", 2)
				w.index(&Widget{}, "m.good", func(client.Object) []string { return []string{"yes"} })
				w.index(&Widget{}, "a.frail", frail)
				w.index(&Widget{}, "z.frail", frail)
				for _, fields := range []client.MatchingFields{{"a.frail": "yes", "m.good": "yes"}, {"m.good": "yes", "z.frail": "yes"}} {
					if diff := cmp.Diff([]string{"a"}, w.names(fields)); diff != "" {
						t.Errorf("%v: %s", fields, diff)
					}
				}
			})
		})
	}
}

// The error has the field, as in controller-runtime, and not the name under which a packed or an earlier cache has its index.
func TestList_ErrorOfAFieldWithoutAnIndex(t *testing.T) {
	for name, options := range caches {
		t.Run(name, func(t *testing.T) {
			in(t, served{widgetType}, cache.Options{}, options, func(w *world) {
				for range 2 {
					if _, err := w.count(&Widget{}, "size", "1"); err == nil || err.Error() != "Index with name field:size does not exist" {
						t.Errorf("List: %v", err)
					}
					if err := w.cache.RemoveInformer(w.ctx, &Widget{}); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// A List reads the index functions while another goroutine adds one.
func TestList_FieldsWhileAnIndexIsAdded(t *testing.T) {
	for name, options := range caches {
		t.Run(name, func(t *testing.T) {
			in(t, served{widgetType}, cache.Options{}, options, func(w *world) {
				w.create(widgets, "ns", "a", 1)
				w.index(&Widget{}, "size", bySize)
				w.index(&Widget{}, "frail", frail)
				added := make(chan error)
				go func() { added <- w.cache.IndexField(w.ctx, &Widget{}, "more", bySize) }()
				if diff := cmp.Diff([]string{"a"}, w.names(client.MatchingFields{"size": "1", "frail": "yes"})); diff != "" {
					t.Error(diff)
				}
				if err := <-added; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// After RemoveInformer, a field can be indexed again with another function, also if another form or a lease keeps the informer.
func TestIndexField_AgainAfterRemoveInformer(t *testing.T) {
	for name, object := range map[string]client.Object{"default": newUnstructured(widgetKind), "packed": &Widget{}} {
		t.Run(name, func(t *testing.T) {
			in(t, served{widgetType}, cache.Options{}, caches[name], func(w *world) {
				w.create(widgets, "ns", "a", 1)
				other := w.acquire()
				defer other.Release()
				w.index(object, "size", bySize)
				if err := w.cache.IndexField(w.ctx, object, "size", bySize); err == nil || !strings.Contains(err.Error(), "indexer conflict") {
					t.Errorf("a second index of a field: %v", err)
				}
				if err := w.cache.RemoveInformer(w.ctx, object); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if _, err := w.count(object, "size", "1"); err == nil {
					t.Error("the new informer has the index of the removed one")
				}
				w.index(object, "size", func(client.Object) []string { return []string{"new"} })
				for value, want := range map[string]int{"1": 0, "new": 1} {
					if got, err := w.count(object, "size", value); err != nil || got != want {
						t.Errorf("size=%s: %d objects, want %d: %v", value, got, want, err)
					}
				}
				if n := len(w.Requests("watch", widgets)); n != 1 {
					t.Errorf("%d watches: the informer was not shared", n)
				}
			})
		})
	}
}
