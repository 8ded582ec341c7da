package handlers

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
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
	of.OnAdd(tree, false)
	unknown := cache.DeletedFinalStateUnknown{Key: "a", Obj: object}
	for _, obj := range []any{tree, object, unknown} { // the handler has not got the one that is not packed
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

// version returns a version of an object as the cache has it: as a tree if it has a number of a type that no decoder returns.
func version(t *testing.T, name string, version int, number any) any {
	t.Helper()
	return versionOf(t, packed.NewPacker(), name, name, version, number)
}

func versionOf(t *testing.T, packer *packed.Packer, name, uid string, version int, number any) any {
	t.Helper()
	tree := &unstructured.Unstructured{Object: map[string]any{"kind": "A", "number": number, "metadata": map[string]any{
		"namespace": "ns", "name": name, "uid": uid, "resourceVersion": fmt.Sprint(version),
	}}}
	object, err := packer.Pack(tree)
	if err != nil {
		return tree
	}
	return object
}

// deletionText describes the argument of OnDelete.
func deletionText(d cache.DeletedObject[*packed.Object]) string {
	text := "delete " + d.GetKey()
	if d.OptionalObj != nil {
		number, _ := d.OptionalObj.Field("number")
		text = fmt.Sprintf("delete %s number %v", d.OptionalObj.GetResourceVersion(), number)
	}
	if d.FinalStateUnknown != nil {
		text += " unknown"
		if obj := d.FinalStateUnknown.Obj; obj != nil && obj != any(d.OptionalObj) {
			text += " of another object"
		}
	}
	return text
}

// A handler that has got an object gets its deletion, in any form, and another handler does not. Coalescing and parking merge an update and
// the deletion.
func TestOfPacked_DeletionIsOfAnObjectThatTheHandlerHasGot(t *testing.T) {
	tree := func(number int) any { return number } // of a type that no decoder returns
	packs := func(number int64) any { return number }
	for name, tc := range map[string]struct {
		numbers       []any // of the addition, an update and the deletion
		unknown       bool
		plain, merged []string
	}{
		"deletion in another form":   {[]any{packs(1), tree(2)}, false, []string{"add 1", "delete 2 number 2"}, []string{"add 1", "delete 2 number 2"}},
		"unknown in another form":    {[]any{packs(1), tree(2)}, true, []string{"add 1", "delete 2 number 2 unknown"}, []string{"add 1", "delete 2 number 2 unknown"}},
		"deletion without JSON":      {[]any{packs(1), func() {}}, false, []string{"add 1", "delete ns/x unknown"}, []string{"add 1", "delete ns/x unknown"}},
		"unknown without JSON":       {[]any{packs(1), func() {}}, true, []string{"add 1", "delete ns/x unknown"}, []string{"add 1", "delete ns/x unknown"}},
		"deletion in the first form": {[]any{tree(1), packs(2)}, false, nil, nil},
		"all in another form":        {[]any{tree(1), tree(2), tree(3)}, false, nil, nil},
		"update to another form":     {[]any{packs(1), tree(2), tree(3)}, false, []string{"add 1", "delete 1 number 1"}, []string{"add 1", "delete 3 number 3"}},
		"update with another form":   {[]any{packs(1), tree(2), packs(3)}, false, []string{"add 1", "delete 1 number 1"}, []string{"add 1", "delete 3 number 3"}},
		"update to the packed form":  {[]any{tree(1), packs(2), packs(3)}, false, []string{"add 2", "delete 3 number 3"}, nil},
		"update and another form":    {[]any{tree(1), packs(2), tree(3)}, false, []string{"add 2", "delete 3 number 3"}, nil},
		"packed in all versions":     {[]any{packs(1), packs(2), packs(3)}, false, []string{"add 1", "update 2", "delete 3 number 3"}, []string{"add 1", "delete 3 number 3"}},
	} {
		for mode, want := range map[string][]string{"plain": tc.plain, "coalescing": tc.merged, "parked": tc.merged} {
			t.Run(name+", "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var calls []string
					busy := make(chan struct{})
					i, o := newFed(), &owner{}
					s := NewSet(i, &feed{}, nil)
					s.Owner = o
					_, err := s.Add(OfPacked(cache.TypedResourceEventHandlerFuncs[*packed.Object]{
						AddFunc: func(obj *packed.Object) {
							if obj.GetName() == "busy" {
								<-busy
								return
							}
							calls = append(calls, "add "+obj.GetResourceVersion())
						},
						UpdateFunc: func(_, obj *packed.Object) { calls = append(calls, "update "+obj.GetResourceVersion()) },
						DeleteFunc: func(d cache.DeletedObject[*packed.Object]) { calls = append(calls, deletionText(d)) },
					}), cache.HandlerOptions{}, NewGroup("", Options{Coalescing: mode == "coalescing"}), 0)
					if err != nil {
						t.Fatal(err)
					}
					_, stop := s.Start(t.Context())
					defer stop()
					h := i.handlers[0]
					latest := version(t, "x", 1, tc.numbers[0])
					h.OnAdd(latest, true)
					synctest.Wait()
					switch mode {
					case "coalescing":
						h.OnAdd(version(t, "busy", 1, nil), false)
						synctest.Wait()
					case "parked":
						o.change("x", "")
					}
					for n, number := range tc.numbers[1:] {
						next := version(t, "x", n+2, number)
						switch {
						case n+2 < len(tc.numbers):
							h.OnUpdate(latest, next)
						case tc.unknown:
							h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/x", Obj: next})
						default:
							h.OnDelete(next)
						}
						latest = next
					}
					close(busy)
					o.change("", "")
					s.OwnershipChanged()
					synctest.Wait()
					if diff := cmp.Diff(want, calls); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
					close(i.stop)
					s.Wait()
				})
			})
		}
	}
}

// An object that the handler has not got may be followed by one with the same name.
func TestOfPacked_NameOfAnotherForm(t *testing.T) {
	var calls []string
	h := OfPacked(cache.TypedResourceEventHandlerFuncs[*packed.Object]{
		AddFunc:    func(obj *packed.Object) { calls = append(calls, "add "+obj.GetResourceVersion()) },
		DeleteFunc: func(d cache.DeletedObject[*packed.Object]) { calls = append(calls, deletionText(d)) },
	})
	h.OnAdd(version(t, "x", 1, 1), false)
	h.OnAdd(version(t, "y", 2, 2), false)
	h.OnDelete(version(t, "x", 3, 3))
	h.OnAdd(version(t, "x", 4, nil), false)
	h.OnDelete(version(t, "x", 5, 5))
	h.OnAdd(version(t, "y", 6, nil), false)
	h.OnDelete(version(t, "y", 7, 7))
	if want := []string{"add 4", "delete 5 number 5", "add 6", "delete 7 number 7"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}
