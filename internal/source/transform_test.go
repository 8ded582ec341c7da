package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// transforms are transforms that users write.
var transforms = map[string]func(obj *unstructured.Unstructured) any{
	"removes managed fields": func(obj *unstructured.Unstructured) any {
		obj.SetManagedFields(nil)
		return obj
	},
	"sets an annotation": func(obj *unstructured.Unstructured) any {
		obj.SetAnnotations(map[string]string{"seen": "yes"})
		return obj
	},
	"returns another object and empties the first": func(obj *unstructured.Unstructured) any {
		other := obj.DeepCopy()
		clear(obj.Object["metadata"].(map[string]any))
		return other
	},
	"replaces the metadata": func(obj *unstructured.Unstructured) any {
		name, namespace, uid, version := obj.GetName(), obj.GetNamespace(), obj.GetUID(), obj.GetResourceVersion()
		obj.Object = map[string]any{"metadata": map[string]any{}}
		obj.SetName(name)
		obj.SetNamespace(namespace)
		obj.SetUID(uid)
		obj.SetResourceVersion(version)
		return obj
	},
	"removes the resourceVersion": func(obj *unstructured.Unstructured) any {
		obj.SetResourceVersion("")
		return obj
	},
	"removes the UID": func(obj *unstructured.Unstructured) any {
		obj.SetUID("")
		return obj
	},
	"sets the name": func(obj *unstructured.Unstructured) any {
		obj.SetName("x" + obj.GetName()) // no call gets the result of another one
		return obj
	},
	"sets a number of a type that JSON does not have": func(obj *unstructured.Unstructured) any {
		obj.Object["generation"] = 7
		return obj
	},
	"returns an object of another type": func(obj *unstructured.Unstructured) any {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		}}
	},
}

// An object that was sent to the reflector belongs to the informer's transform, which may write to
// it at once: the source must not read it any more. The race detector reports such a read. Without
// it, the runtime ends the process.
func TestTransform_MayWriteToEachObject(t *testing.T) {
	for name, transform := range transforms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkTransform(t, transform) })
		})
	}
}

func checkTransform(t *testing.T, transform func(*unstructured.Unstructured) any) {
	t.Helper()
	f := newFake(t, transform)
	f.create(0, 40)
	f.expect("created", 40)
	f.update(0, 40)
	f.expect("updated", 40)
	if got := f.counts; got["added"] != 40 || got["deleted"] != 0 || got["updated"] < 40 {
		t.Errorf("updated: the handler got %v, want 40 objects added and none deleted", got)
	}
	f.remove(0, 10)
	f.expect("deleted", 30)

	f.disconnect() // a list gives the changes of the meantime
	f.update(10, 20)
	f.remove(20, 30)
	f.create(40, 50)
	f.reconnect()
	f.expect("listed", 30)

	f.serve(source.Gone, 0)
	f.expect("gone", 0)
	f.serve(source.Served, 1)
	f.expect("served again", 30)
	f.serve(source.Served, 2)
	f.expect("served as another type", 30)

	f.stop()
}

// fake is an informer on client-go's fake client, with a transform, a resync period, and a handler
// that reads all fields of each object.
type fake struct {
	*run
	t         *testing.T
	client    *dynamicfake.FakeDynamicClient
	available *source.Availability

	mu       sync.Mutex
	watches  []watch.Interface
	offline  bool
	present  map[string]bool // objects, by the events of the handler
	counts   map[string]int  // of events
	problems []string
}

func newFake(t *testing.T, transform func(*unstructured.Unstructured) any) *fake {
	t.Helper()
	f := &fake{
		t: t, available: newAvailability(source.Served), present: map[string]bool{}, counts: map[string]int{},
		client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgets: "WidgetList"}),
	}
	f.client.PrependWatchReactor("widgets", f.watch)
	s := source.New(source.Config{Client: source.Unstructured(f.client), GVR: widgets, Availability: f.available})
	informer := cache.NewSharedIndexInformer(s.ListerWatcher(), nil, time.Minute, cache.Indexers{})
	s.LookUp(func(key string) (any, bool) {
		item, there, err := informer.GetStore().GetByKey(key)
		return item, there && err == nil
	})
	if err := s.SetTransform(func(obj any) (any, error) { return transform(obj.(*unstructured.Unstructured)), nil }); err != nil {
		t.Fatal(err)
	}
	if err := informer.SetTransform(source.Unwrap); err != nil {
		t.Fatal(err)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.record("added", obj, false, true) },
		UpdateFunc: func(_, obj any) { f.record("updated", obj, true, true) },
		DeleteFunc: func(obj any) { f.record("deleted", obj, true, false) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.run = &run{SharedIndexInformer: informer, source: s, cancel: cancel, ended: make(chan struct{})}
	go func() { defer close(f.ended); informer.RunWithContext(ctx) }()
	synctest.Wait()
	return f
}

// watch responds to a watch, with an error while the server can't be reached.
func (f *fake) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.offline {
		return true, nil, apierrors.NewResourceExpired("too old")
	}
	w, err := f.client.Tracker().Watch(widgets, action.GetNamespace())
	f.watches = append(f.watches, w)
	return true, w, err
}

func (f *fake) disconnect() {
	f.mu.Lock()
	f.offline = true
	for _, w := range f.watches {
		w.Stop()
	}
	f.watches = nil
	f.mu.Unlock()
	synctest.Wait()
}

func (f *fake) reconnect() {
	f.mu.Lock()
	f.offline = false
	f.mu.Unlock()
	f.source.Retry()
}

func (f *fake) serve(serving source.Serving, generation int) {
	f.available.Set(source.Type{Serving: serving, GVR: widgets, Kind: "Widget", Namespaced: true, Generation: generation})
}

func (f *fake) object(i int, color string) *unstructured.Unstructured {
	obj := newObject(fmt.Sprint("a", i))
	obj.SetAPIVersion("example.com/v1")
	obj.SetKind("Widget")
	obj.SetUID(types.UID("uid-of-" + obj.GetName()))
	obj.SetLabels(map[string]string{"color": color})
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "test"}})
	return obj
}

func (f *fake) create(from, to int) {
	f.t.Helper()
	for i := from; i < to; i++ {
		if _, err := f.client.Resource(widgets).Namespace("ns").Create(f.t.Context(), f.object(i, "red"), metav1.CreateOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fake) update(from, to int) {
	f.t.Helper()
	for i := from; i < to; i++ {
		obj := f.object(i, "blue")
		obj.SetResourceVersion("2")
		if _, err := f.client.Resource(widgets).Namespace("ns").Update(f.t.Context(), obj, metav1.UpdateOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fake) remove(from, to int) {
	f.t.Helper()
	for i := from; i < to; i++ {
		if err := f.client.Resource(widgets).Namespace("ns").Delete(f.t.Context(), fmt.Sprint("a", i), metav1.DeleteOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fake) record(event string, obj any, before, after bool) {
	if last, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = last.Obj
	}
	if _, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil { // reads all of it
		f.t.Error(err)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := accessor.GetName()
	f.counts[event]++
	if f.present[name] != before {
		f.problems = append(f.problems, name+" "+event)
	}
	f.present[name] = after
	if !after {
		delete(f.present, name)
	}
}

// expect waits for some resyncs, and compares the objects in the store with those of the handler.
func (f *fake) expect(when string, objects int) {
	f.t.Helper()
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problems != nil {
		f.t.Errorf("%s: the handler got %q", when, f.problems)
	}
	var reports []string
	for name := range f.present {
		reports = append(reports, "ns/"+name)
	}
	slices.Sort(reports)
	if diff := cmp.Diff(slices.Sorted(slices.Values(f.GetStore().ListKeys())), reports); diff != "" || len(reports) != objects {
		f.t.Errorf("%s: %d objects, want %d (-store +handler):\n%s", when, len(reports), objects, diff)
	}
}

// A transform that is set after the start of the source would apply only to some objects.
func TestTransform_CannotBeSetAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(obj *unstructured.Unstructured) any { return obj })
		f.create(0, 1)
		if err := f.source.SetTransform(nil); !errors.Is(err, source.ErrStarted) {
			t.Errorf("error %v, want ErrStarted", err)
		}
		f.expect("created", 1)
		f.stop()
	})
}

// A transform may make the name of an object from something that changes.
func TestTransform_KeyOfAnObjectChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runTransformed(t, func(obj any) (any, error) {
			object := obj.(*unstructured.Unstructured)
			if color := object.GetLabels()["color"]; color != "none" {
				object.SetName(color + "-" + object.GetName())
			}
			return object, nil
		}, "x", "y")
		w.handler.take()
		w.setColor("x", "blue")
		w.expect("with another color:", "delete red-x red", "add blue-x blue")
		w.setColor("x", "none")
		w.expect("with its own name:", "delete blue-x blue", "add x none")
		w.setColor("x", "red")
		w.expect("with the first color:", "delete x none", "add red-x red")
		w.remove("x")
		w.expect("deleted:", "delete red-x red")
		if diff := cmp.Diff([]string{"ns/red-y"}, w.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	})
}

// An object for which the transform fails when the type changes to another version is changed later.
func TestTransform_FailsWhileTheVersionChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, available, fails := fakecluster.New(widgetType), newAvailability(source.Served), atomic.Bool{}
		create(t, cluster, "ns", "a", "red")
		s := source.New(source.Config{Client: anyVersion{source.Unstructured(cluster)}, GVR: widgets, Availability: available})
		if err := s.SetTransform(func(obj any) (any, error) {
			if fails.Load() {
				return nil, errors.New("bad")
			}
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		w := runSource(t, s)
		defer w.stop()
		check := func(when, version string, rejected int) {
			t.Helper()
			obj, _, _ := w.GetStore().GetByKey("ns/a")
			if got, left := obj.(*unstructured.Unstructured).GroupVersionKind().Version, s.State().Rejected.Count; got != version || left != rejected {
				t.Errorf("%s version %s, %d rejected, want %s, %d", when, got, left, version, rejected)
			}
		}
		fails.Store(true)
		now, _ := available.Current()
		now.GVR.Version = "v2"
		available.Set(now)
		time.Sleep(time.Second)
		check("failing:", "v1", 1)
		fails.Store(false)
		now.Unsettled = true
		available.Set(now)
		time.Sleep(time.Second)
		check("then:", "v2", 0)
	})
}
