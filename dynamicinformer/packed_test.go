package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/objectlister"
	"github.com/gvrkit/gvrkit/packed"
)

// packedRecorder records the events of a handler of packed objects.
type packedRecorder struct {
	mu     sync.Mutex
	events []string
}

func (r *packedRecorder) record(event string, obj *packed.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	color, _ := obj.Field("spec", "color")
	r.events = append(r.events, fmt.Sprintf("%s %s/%s %v", event, obj.GetNamespace(), obj.GetName(), color))
}

func (r *packedRecorder) OnAdd(obj *packed.Object, initial bool) {
	r.record(fmt.Sprintf("add %v", initial), obj)
}

func (r *packedRecorder) OnUpdate(before, obj *packed.Object) {
	color, _ := before.Field("spec", "color")
	r.record(fmt.Sprintf("update %v to", color), obj)
}

func (r *packedRecorder) OnDelete(obj cache.DeletedObject[*packed.Object]) {
	r.record("delete", obj.OptionalObj)
}

func (r *packedRecorder) take() (events []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, r.events = r.events, nil
	return events
}

// paint changes an object of cluster.
func paint(t *testing.T, cluster *fakecluster.Cluster, name, color string) {
	t.Helper()
	client := cluster.Resource(widgets).Namespace("ns")
	obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(obj.Object, color, "spec", "color"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Both kinds of handlers get all events, and every reader has ordinary objects.
func TestPackedCache_HandlersAndReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, widgets, dynamicinformer.WithPackedCache(), dynamicinformer.WithIndexers(cache.Indexers{"color": func(obj any) ([]string, error) {
			color, _, err := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "spec", "color")
			return []string{color}, err
		}}))
		usual, direct := listen(t, l.Informer()), &packedRecorder{}
		if _, err := l.AddPackedHandler(direct, cache.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		ordinary := func(obj any) {
			if _, is := obj.(*unstructured.Unstructured); !is {
				t.Errorf("a handler gets a %T", obj)
			}
		}
		if _, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: ordinary, DeleteFunc: ordinary, UpdateFunc: func(before, obj any) {
			ordinary(before)
			ordinary(obj)
		}}); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		paint(t, cluster, "a", "red")
		create(t, cluster, widgets, "ns", "b")
		synctest.Wait()
		indexer := l.Informer().GetIndexer()
		for name, read := range map[string]func() (any, error){
			"List":       func() (any, error) { return indexer.List()[0], nil },
			"store":      func() (any, error) { return l.Informer().GetStore().List()[0], nil },
			"GetByKey":   func() (any, error) { obj, _, err := indexer.GetByKey("ns/a"); return obj, err },
			"Get":        func() (any, error) { obj, _, err := indexer.Get(newObject("a", nil)); return obj, err },
			"ByIndex":    func() (any, error) { found, err := indexer.ByIndex("color", "red"); return found[0], err },
			"Index":      func() (any, error) { found, err := indexer.Index("color", indexer.List()[0]); return found[0], err },
			"lister":     func() (any, error) { return l.Lister().ByNamespace("ns").Get("a") },
			"lister all": func() (any, error) { found, err := l.Lister().List(labels.Everything()); return found[0], err },
			"reader":     func() (any, error) { return l.Unstructured().Get("ns/a") },
		} {
			obj, err := read()
			if u, is := obj.(*unstructured.Unstructured); err != nil || name != "Get" && (!is || u.GetNamespace() != "ns") {
				t.Errorf("%s: a %T, error %v", name, obj, err)
			}
		}
		first, _ := l.Lister().ByNamespace("ns").Get("a")
		if again, _ := l.Lister().ByNamespace("ns").Get("a"); first != again {
			t.Error("an object that is in use is unpacked again")
		}
		if err := cluster.Resource(widgets).Namespace("ns").Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cluster.Withdraw(widgets) // the deletion of a is made from the cache
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a", "update ns/a", "add ns/b", "delete ns/b", "delete ns/a"}, usual.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{
			"add true ns/a <nil>", "update <nil> to ns/a red", "add false ns/b <nil>", "delete ns/b <nil>", "delete ns/a red",
		}, direct.take()); diff != "" {
			t.Errorf("packed events (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

func TestPackedCache_LeasesShareAnInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster)
		plain := acquire(t, f, blocks)
		if _, err := f.Acquire(t.Context(), blocks, dynamicinformer.WithPackedCache()); (err == nil) != packedCaches || err != nil && !errors.Is(err, dynamicinformer.ErrConflict) {
			t.Errorf("error %v", err)
		}
		_, err := plain.AddPackedHandler(&packedRecorder{}, cache.HandlerOptions{})
		if wrong, is := errors.AsType[*dynamicinformer.OptionError](err); !packedCaches && (!is || wrong.Option != "AddPackedHandler" || !strings.Contains(err.Error(), "WithPackedCache")) {
			t.Errorf("error %v", err)
		}
		slim := acquire(t, f, widgets, dynamicinformer.WithPackedCache())
		other, err := f.Acquire(t.Context(), widgets)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*dynamicinformer.Lease{slim, other} {
			if _, err := l.AddPackedHandler(&packedRecorder{}, cache.HandlerOptions{}); err != nil {
				t.Error(err)
			}
		}
		if _, err := slim.AddPackedHandler((*cache.TypedResourceEventHandlerFuncs[*packed.Object])(nil), cache.HandlerOptions{}); !errors.Is(err, dynamicinformer.ErrNilHandler) {
			t.Errorf("a nil pointer: %v", err)
		}
		if _, err := slim.AddPackedHandler(nil, cache.HandlerOptions{}); !errors.Is(err, dynamicinformer.ErrNilHandler) {
			t.Errorf("error %v", err)
		}
		shutdown(t, f)
	})
}

// Metadata is not packed, so that the option can't conflict.
func TestPackedCache_MetadataIgnoresTheOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, dynamicinformer.WithMetadataClient(newMetadataClient(t)))
		start(t.Context(), f)
		acquire(t, f, widgets, dynamicinformer.WithMetadataOnly())
		l := acquire(t, f, widgets, dynamicinformer.WithMetadataOnly(), dynamicinformer.WithPackedCache())
		synctest.Wait()
		for _, obj := range l.Informer().GetStore().List() {
			if _, is := obj.(*metav1.PartialObjectMetadata); !is {
				t.Errorf("the store has a %T", obj)
			}
		}
		if _, err := l.AddPackedHandler(&packedRecorder{}, cache.HandlerOptions{}); !errors.Is(err, dynamicinformer.ErrInvalidOption) {
			t.Errorf("error %v", err)
		}
		shutdown(t, f)
	})
}

// The variable reaches the factories and informers of client-go's constructors, which have no options.
func TestPackedCache_TheVariablePacksEverything(t *testing.T) {
	t.Setenv("GVRKIT_PACKED_CACHES", "true")
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		factory := dynamicinformer.NewDynamicSharedInformerFactory(cluster, 0)
		alone := dynamicinformer.NewFilteredDynamicInformer(cluster, widgets, "ns", 0, nil, nil)
		stop := make(chan struct{})
		of := []cache.SharedIndexInformer{factory.ForResource(widgets).Informer(), alone.Informer()}
		factory.Start(stop)
		go of[1].Run(stop)
		synctest.Wait()
		for n, informer := range of {
			indexer, is := informer.GetIndexer().(objectlister.Packed)
			if !is {
				t.Fatalf("informer %d is not packed", n)
			}
			cached, _ := indexer.Packed()
			stored, there, err := cached.GetByKey("ns/a")
			if _, is := stored.(*packed.Object); !is || !there || err != nil {
				t.Errorf("informer %d has a %T, error %v", n, stored, err)
			}
		}
		for n, informer := range of {
			err := informer.GetIndexer().AddIndexers(cache.Indexers{"name": func(obj any) ([]string, error) {
				return []string{obj.(*unstructured.Unstructured).GetName()}, nil
			}})
			found, missing := informer.GetIndexer().ByIndex("name", "a")
			if err != nil || missing != nil || len(found) != 1 {
				t.Errorf("informer %d has %d objects in an index that was added through the indexer: %v, %v", n, len(found), err, missing)
			}
		}
		close(stop)
		factory.Shutdown()
	})
}

// Objects of a client that are shared, such as those of a fake client, are not those of the cache, and the cache does not change with them.
func TestPackedCache_DoesNotReferToTheObjectsOfTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newObject("a", map[string]string{"app": "calico-node"})
		shared.SetAPIVersion("example.com/v1")
		shared.SetKind("Widget")
		shared.SetNamespace("ns")
		shared.SetResourceVersion("1")
		want := shared.DeepCopy()
		f := newFactory(t, sharingClient{objects: []unstructured.Unstructured{*shared}}, dynamicinformer.WithPackedCache(), dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
		start(t.Context(), f)
		l := acquire(t, f, widgets)
		synctest.Wait()
		shared.Object["metadata"].(map[string]any)["labels"].(map[string]any)["app"] = "changed"
		got, err := l.Unstructured().Get("ns/a")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
		shutdown(t, f)
	})
}

// sharingClient is a client whose lists have the same objects, and whose watches are silent.
type sharingClient struct {
	dynamic.NamespaceableResourceInterface

	objects []unstructured.Unstructured
}

func (c sharingClient) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return c
}

func (c sharingClient) Namespace(string) dynamic.ResourceInterface { return c }

func (c sharingClient) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Items: c.objects}
	list.SetResourceVersion("1")
	return list, nil
}

func (c sharingClient) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// A transform may write to the objects that it gets, which are not those of the cache.
func TestPackedCache_Transform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		create(t, cluster, widgets, "ns", "odd")
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithPackedCache(), dynamicinformer.WithTransform(func(obj any) (any, error) {
			u := obj.(*unstructured.Unstructured)
			u.SetAnnotations(map[string]string{"seen": "yes"})
			if u.GetName() == "odd" {
				u.Object["number"] = 1 // of a type that no decoder returns
			}
			return u, nil
		}))
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		direct := &packedRecorder{}
		if _, err := l.AddPackedHandler(direct, cache.HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		paint(t, cluster, "a", "red")
		synctest.Wait()
		for _, name := range []string{"a", "odd"} {
			obj, err := l.Unstructured().Get("ns/" + name)
			if err != nil || obj.GetAnnotations()["seen"] != "yes" {
				t.Errorf("%s: %v, %v", name, obj, err)
			}
		}
		cluster.Withdraw(widgets)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add true ns/a <nil>", "update <nil> to ns/a red", "delete ns/a red"}, direct.take()); diff != "" {
			t.Errorf("packed events (-want +got):\n%s", diff)
		}
		if keys := l.Informer().GetStore().ListKeys(); len(keys) != 0 {
			t.Errorf("in the cache: %v", keys)
		}
		shutdown(t, f)
	})
}

// busyPacked is a packedRecorder whose addition of b lasts until release closes.
type busyPacked struct {
	packedRecorder

	release chan struct{}
}

func (b *busyPacked) OnAdd(obj *packed.Object, initial bool) {
	if obj.GetName() == "b" {
		<-b.release
		return
	}
	b.packedRecorder.OnAdd(obj, initial)
}

// A transform gives the last state of an object another form than the one that the handler has got. The event of a deletion may have a state that no
// other event has had, such as after the last finalizer.
func TestPackedCache_DeletionInAnotherForm(t *testing.T) {
	for name, merged := range map[string]bool{"only the deletion": false, "an update and the deletion, merged": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType, blockType)
				create(t, cluster, widgets, "ns", "a")
				f := newFactory(t, cluster, withDiscovery(t, cluster))
				f.Start(t.Context())
				var odd atomic.Bool
				options := []dynamicinformer.LeaseOption{dynamicinformer.WithPackedCache(), dynamicinformer.WithTransform(func(obj any) (any, error) {
					if u := obj.(*unstructured.Unstructured); odd.Load() && u.GetName() == "a" {
						u.Object["number"] = 1 // of a type that no decoder returns
					}
					return obj, nil
				})}
				if merged {
					options = append(options, dynamicinformer.WithCoalescing(0))
				}
				l, direct := acquire(t, f, widgets, options...), &busyPacked{release: make(chan struct{})}
				if _, err := l.AddPackedHandler(direct, cache.HandlerOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				paint(t, cluster, "a", "red")
				synctest.Wait()
				odd.Store(true)
				color := "red"
				if merged {
					color = "blue"
					create(t, cluster, widgets, "ns", "b")
					synctest.Wait()
					paint(t, cluster, "a", color)
				}
				if err := cluster.Resource(widgets).Namespace("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				close(direct.release)
				synctest.Wait()
				if diff := cmp.Diff([]string{"add true ns/a <nil>", "update <nil> to ns/a red", "delete ns/a " + color}, direct.take()); diff != "" {
					t.Errorf("packed events (-want +got):\n%s", diff)
				}
				shutdown(t, f)
			})
		})
	}
}
