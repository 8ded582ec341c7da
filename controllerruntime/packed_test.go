package controllerruntime

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/packed"
)

// bySize is the index function of a field.
func bySize(object client.Object) []string {
	switch object := object.(type) {
	case *Widget:
		return []string{fmt.Sprint(object.Size)}
	case *unstructured.Unstructured:
		return []string{fmt.Sprint(object.Object["size"])}
	}
	return nil
}

func TestPackedCaches_OneWatchServesAllForms(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithPackedCaches()}, func(w *world) {
		w.create(widgets, "ns", "a", 1)
		structured, tree, metadata := w.informer(&Widget{}), w.informer(newUnstructured(widgetKind)), w.informer(newMetadata(widgetKind))
		if n := len(w.Requests("watch", widgets)); n != 1 {
			t.Errorf("%d watches", n)
		}
		for want, i := range map[string]cache.Informer{"*controllerruntime.Widget": structured, "*unstructured.Unstructured": tree, "*v1.PartialObjectMetadata": metadata} {
			got, _ := listen(t, i)
			if diff := cmp.Diff([]string{"add " + want + " ns/a"}, got.take()); diff != "" {
				t.Error(diff)
			}
		}

		key := client.ObjectKey{Namespace: "ns", Name: "a"}
		var widget Widget
		if err := w.cache.Get(w.ctx, key, &widget); err != nil || widget.Size != 1 || widget.GroupVersionKind() != widgetKind {
			t.Errorf("Get: %v, %v", err, widget)
		}
		object := newUnstructured(widgetKind)
		if err := w.cache.Get(w.ctx, key, object); err != nil || object.Object["size"] != int64(1) {
			t.Errorf("Get: %v, %v", err, object)
		}
		object.Object["size"] = 7 // it belongs to the caller
		if err := w.cache.Get(w.ctx, key, object); err != nil || object.Object["size"] != int64(1) {
			t.Errorf("Get: %v, %v", err, object)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
		if err := w.cache.List(w.ctx, list); err != nil || len(list.Items) != 1 || list.Items[0].GroupVersionKind() != widgetKind {
			t.Errorf("List: %v, %v", err, list)
		}
	})
}

// The forms have one indexer, and each may have an index of the same field.
func TestPackedCaches_EachFormHasItsIndexes(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithPackedCaches()}, func(w *world) {
		w.create(widgets, "ns", "a", 1)
		w.create(widgets, "ns", "b", 2)
		for _, object := range []client.Object{&Widget{}, newUnstructured(widgetKind)} {
			if err := w.cache.IndexField(w.ctx, object, "size", bySize); err != nil {
				t.Fatal(err)
			}
			if err := w.cache.IndexField(w.ctx, object, "name", func(object client.Object) []string { return []string{object.GetName()} }); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"b"}, w.names(client.MatchingFields{"size": "2"})); diff != "" {
			t.Error(diff)
		}
		if names := w.names(client.MatchingFields{"size": "2", "name": "a"}); len(names) > 0 {
			t.Errorf("two fields select %v", names)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
		if err := w.cache.List(w.ctx, list, client.MatchingFields{"size": "1"}); err != nil || len(list.Items) != 1 {
			t.Errorf("List: %v, %v", err, list)
		}
	})
}

// Size of the Go type has 32 bits.
func TestPackedCaches_ObjectThatDoesNotFit(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithPackedCaches()}, func(w *world) {
		got, _ := listen(t, w.informer(&Widget{}))
		w.create(widgets, "ns", "a", 1<<40)
		w.create(widgets, "ns", "b", 1)
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/b"}, got.take()); diff != "" {
			t.Error(diff)
		}
		if err := w.cache.Get(w.ctx, client.ObjectKey{Namespace: "ns", Name: "a"}, &Widget{}); err == nil {
			t.Error("Get returns an object that does not fit")
		}
		if err := w.cache.Get(w.ctx, client.ObjectKey{Namespace: "ns", Name: "a"}, newUnstructured(widgetKind)); err != nil {
			t.Error(err)
		}
		object, err := w.Resource(widgets).Namespace("ns").Get(w.ctx, "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		object.Object["size"] = int64(2)
		if _, err := w.Resource(widgets).Namespace("ns").Update(w.ctx, object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Resource(widgets).Namespace("ns").Delete(w.ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/a", "delete *controllerruntime.Widget ns/a"}, got.take()); diff != "" {
			t.Error(diff)
		}
	})
}

// resize sets the size of the widget ns/a.
func (w *world) resize(size int64) {
	object, err := w.Resource(widgets).Namespace("ns").Get(w.ctx, "a", metav1.GetOptions{})
	if err != nil {
		panic(err)
	}
	object.Object["size"] = size
	if _, err := w.Resource(widgets).Namespace("ns").Update(w.ctx, object, metav1.UpdateOptions{}); err != nil {
		panic(err)
	}
	synctest.Wait()
}

// A handler has the last version that fits its Go type. It gets no event while the object does not fit.
func TestPackedCaches_ObjectThatDoesNotFitAnyMore(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithPackedCaches()}, func(w *world) {
		i := w.informer(&Widget{})
		got, _ := listen(t, i)
		var sizes []int32
		if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			UpdateFunc: func(before, after any) {
				sizes = append(sizes, before.(*Widget).Size, after.(*Widget).Size)
			},
			DeleteFunc: func(obj any) { sizes = append(sizes, obj.(*Widget).Size) },
		}); err != nil {
			t.Fatal(err)
		}
		w.create(widgets, "ns", "a", 1)
		w.resize(1 << 40)
		w.resize(1 << 41)
		if diff := cmp.Diff([]string{"add *controllerruntime.Widget ns/a"}, got.take()); diff != "" {
			t.Error(diff)
		}
		w.resize(2)
		w.resize(3)
		w.resize(1 << 40)
		if err := w.Resource(widgets).Namespace("ns").Delete(w.ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.create(widgets, "ns", "a", 4)
		want := []string{
			"add *controllerruntime.Widget ns/a", "delete *controllerruntime.Widget ns/a", "update *controllerruntime.Widget ns/a", "update *controllerruntime.Widget ns/a",
		}
		if diff := cmp.Diff(want, got.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int32{1, 2, 2, 3, 3}, sizes); diff != "" {
			t.Errorf("sizes (-want +got):\n%s", diff)
		}
	})
}

// mover is a handler with OnMoved.
type mover struct{ recorder }

func (m *mover) OnMoved(obj any) { m.record("move", obj) }

func TestPackedCaches_ObjectThatMoves(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithPackedCaches()}, func(w *world) {
		i := w.informer(&Widget{}).(*view).informer
		cached := func(size int64) *packed.Object {
			w.resize(size)
			object, _, err := i.store.GetByKey("ns/a")
			if err != nil {
				t.Fatal(err)
			}
			return object.(*packed.Object)
		}
		w.create(widgets, "ns", "a", 0)
		fits, no := cached(1), cached(1<<40)
		m, r := &mover{}, &recorder{}
		for _, d := range []*decoder{{informer: i, next: m}, {informer: i, next: r}} {
			d.OnAdd(fits, false)
			d.OnUpdate(fits, no)
			d.OnMoved(toolscache.DeletedObject[*packed.Object]{OptionalObj: no})
			d.OnAdd(no, false)
			d.OnUpdate(no, fits)
		}
		add := "add *controllerruntime.Widget ns/a"
		if diff := cmp.Diff([]string{add, add, "move *controllerruntime.Widget ns/a"}, m.take()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{add, add}, r.take()); diff != "" {
			t.Error(diff)
		}
	})
}

// A handler gets the deletion of an object of which it has had a version, and of one that is not known.
func TestPackedCaches_DeletionOfAnObjectWithUnknownState(t *testing.T) {
	in(t, served{widgetType}, cache.Options{}, []Option{WithPackedCaches()}, func(w *world) {
		i := w.informer(&Widget{}).(*view).informer
		cached := func(size int64) *packed.Object {
			w.resize(size)
			object, _, err := i.store.GetByKey("ns/a")
			if err != nil {
				t.Fatal(err)
			}
			return object.(*packed.Object)
		}
		w.create(widgets, "ns", "a", 0)
		fits, no := cached(1), cached(1<<40)
		deleted := "delete cache.DeletedFinalStateUnknown ns/a"
		for name, tc := range map[string]struct {
			before []*packed.Object
			last   *packed.Object
			want   []string
		}{
			"it never fitted":       {before: []*packed.Object{no}, last: no},
			"it fits":               {before: []*packed.Object{fits}, last: fits, want: []string{"add *controllerruntime.Widget ns/a", deleted}},
			"it does not fit now":   {before: []*packed.Object{fits, no}, last: no, want: []string{"add *controllerruntime.Widget ns/a", deleted}},
			"no version is known":   {want: []string{deleted}},
			"only the handler's is": {before: []*packed.Object{fits, no}, want: []string{"add *controllerruntime.Widget ns/a", deleted}},
		} {
			r := &recorder{}
			d := &decoder{informer: i, next: r}
			for n, object := range tc.before {
				if n == 0 {
					d.OnAdd(object, false)
				} else {
					d.OnUpdate(tc.before[n-1], object)
				}
			}
			unknown := &toolscache.DeletedFinalStateUnknown{Key: "ns/a"}
			if tc.last != nil {
				unknown.Obj = tc.last
			}
			d.OnDelete(toolscache.DeletedObject[*packed.Object]{OptionalObj: tc.last, FinalStateUnknown: unknown})
			if diff := cmp.Diff(tc.want, r.take()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	})
}
