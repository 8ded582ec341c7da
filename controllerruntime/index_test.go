package controllerruntime

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
