package dynamicinformer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// objectEvents records, by object, the events of a handler with whole objects. It leaves out updates without another resourceVersion,
// which resyncs and client-go's relists send.
type objectEvents struct {
	mu     sync.Mutex
	events map[string][]any
}

func (h *objectEvents) record(event string, objects ...any) {
	entry := []any{event}
	for _, obj := range objects {
		if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
			obj = unknown.Obj
		}
		object := obj.(*unstructured.Unstructured).DeepCopy()
		if event == "delete" { // client-go's may have an older state, or resourceVersion
			object = newObject(object.GetName(), nil)
		}
		entry = append(entry, object.Object)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := objects[0]
	if unknown, is := name.(cache.DeletedFinalStateUnknown); is {
		name = unknown.Obj
	}
	key := name.(*unstructured.Unstructured).GetName()
	h.events[key] = append(h.events[key], entry)
}

func (h *objectEvents) OnAdd(obj any, _ bool) { h.record("add", obj) }
func (h *objectEvents) OnDelete(obj any)      { h.record("delete", obj) }
func (h *objectEvents) OnUpdate(old, obj any) {
	if old.(*unstructured.Unstructured).GetResourceVersion() != obj.(*unstructured.Unstructured).GetResourceVersion() {
		h.record("update", old, obj)
	}
}

func (h *objectEvents) take() map[string][]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	h.events = map[string][]any{}
	return events
}

// contestant is an informer of an implementation with handlers.
type contestant struct {
	implementation
	informer cache.SharedIndexInformer
	lister   cache.GenericLister
	handlers []*objectEvents
	handles  []cache.ResourceEventHandlerRegistration
}

func (c *contestant) add(t *testing.T, period time.Duration) {
	t.Helper()
	h := &objectEvents{events: map[string][]any{}}
	handle, err := c.informer.AddEventHandlerWithResyncPeriod(h, period)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	c.handlers, c.handles = append(c.handlers, h), append(c.handles, handle)
}

func (c *contestant) remove(t *testing.T, n int) {
	t.Helper()
	if err := c.informer.RemoveEventHandler(c.handles[n]); err != nil {
		t.Errorf("%s: %v", c.name, err)
	}
	c.handlers, c.handles = slices.Delete(c.handlers, n, n+1), slices.Delete(c.handles, n, n+1)
}

// content returns what readers get.
func (c *contestant) content(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, obj := range c.informer.GetStore().List() {
		u := obj.(*unstructured.Unstructured)
		all[u.GetName()] = u.Object
	}
	for _, color := range colorNames {
		selected, err := c.lister.List(labels.SelectorFromSet(labels.Set{"color": color}))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		indexed, err := c.informer.GetIndexer().ByIndex("color", color)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		names := []string{}
		for _, obj := range selected {
			names = append(names, "selected "+obj.(*unstructured.Unstructured).GetName())
		}
		for _, obj := range indexed {
			names = append(names, "indexed "+obj.(*unstructured.Unstructured).GetName())
		}
		slices.Sort(names)
		all["with color "+color] = names
	}
	return all
}

var colorNames = []string{"", "red", "green", "blue"}

// change makes a random change of an object.
func change(r *rand.Rand, u *unstructured.Unstructured) {
	u.SetLabels(map[string]string{"color": colorNames[r.IntN(len(colorNames))]})
	values := []any{nil, true, int64(r.IntN(200)), 0.5, "", "a text", []any{}, map[string]any{}, []any{"x", nil, map[string]any{"deep": []any{int64(1)}}}}
	spec := map[string]any{}
	for n := range r.IntN(6) {
		spec[fmt.Sprintf("field-%d", n)] = values[r.IntN(len(values))]
	}
	spec["common"] = map[string]any{"selector": map[string]any{"app": "calico-node"}, "replicas": int64(r.IntN(2))}
	u.Object["spec"] = spec
}

// The same changes, gaps, relists, resyncs, and handlers that come and go at the same times have the same results as with client-go.
// During a gap, an informer has no events, so that client-go's relist and the differences of this package are the same.
func TestRandomChanges_HaveTheEventsAndObjectsOfClientGo(t *testing.T) {
	for _, impl := range []implementation{gvrkit, gvrkitPacked} {
		for seed := range uint64(fewer(12)) {
			t.Run(fmt.Sprintf("%s/%d", impl.name, seed), func(t *testing.T) {
				if impl.packed {
					t.Setenv("GVRKIT_PACKED_CACHES", "true")
				}
				synctest.Test(t, func(t *testing.T) { randomChanges(t, impl, seed) })
			})
		}
	}
}

func randomChanges(t *testing.T, impl implementation, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 21))
	cluster := fakecluster.New(widgetType, blockType)
	resync := time.Duration(seed%3) * time.Minute
	stop := make(chan struct{})
	var both []*contestant
	for _, impl := range []implementation{clientGo, impl} {
		factory := impl.newFactory(cluster, resync, metav1.NamespaceAll, nil)
		generic := factory.ForResource(widgets)
		c := &contestant{implementation: impl, informer: generic.Informer(), lister: generic.Lister()}
		if err := c.informer.AddIndexers(cache.Indexers{"color": func(obj any) ([]string, error) {
			return []string{obj.(*unstructured.Unstructured).GetLabels()["color"]}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		c.add(t, resync)
		factory.Start(stop)
		both = append(both, c)
		defer factory.Shutdown()
	}
	defer close(stop)
	refused, changed := false, map[string]bool{} // during a gap, each object changes at most once
	ns := cluster.Resource(widgets).Namespace("ns")
	compare := func(step int, operation string) {
		t.Helper()
		want, got := both[0], both[1]
		if diff := cmp.Diff(want.content(t), got.content(t)); diff != "" {
			t.Errorf("step %d, %s: objects (-client-go +%s):\n%s", step, operation, got.name, diff)
		}
		for n := range want.handlers {
			if diff := cmp.Diff(want.handlers[n].take(), got.handlers[n].take()); diff != "" {
				t.Errorf("step %d, %s: events of handler %d (-client-go +%s):\n%s", step, operation, n, got.name, diff)
			}
		}
	}
	for step := range 150 {
		name := fmt.Sprintf("w%d", r.IntN(8))
		operation := r.IntN(14)
		current, err := ns.Get(t.Context(), name, metav1.GetOptions{})
		exists := err == nil
		switch {
		case operation < 8 && refused && changed[name]:
			continue
		case operation < 8 && !exists:
			obj := newObject(name, nil)
			change(r, obj)
			_, err = ns.Create(t.Context(), obj, metav1.CreateOptions{})
		case operation < 6 && exists:
			change(r, current)
			_, err = ns.Update(t.Context(), current, metav1.UpdateOptions{})
		case operation < 8 && exists:
			err = ns.Delete(t.Context(), name, metav1.DeleteOptions{})
		case operation == 8:
			for _, c := range both {
				c.add(t, resync)
			}
		case operation == 9 && len(both[0].handlers) > 1:
			n := r.IntN(len(both[0].handlers))
			for _, c := range both {
				c.remove(t, n)
			}
		case operation == 10:
			cluster.CloseWatches(widgets) // both continue from the same version
			time.Sleep(2 * time.Minute)
		case operation == 11 && !refused:
			refused, err = true, nil
			clear(changed)
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if req.Verb == "list" || req.Verb == "watch" {
					return apierrors.NewServiceUnavailable("gap")
				}
				return nil
			})
			cluster.CloseWatches(widgets)
		case operation >= 12 && refused:
			if operation == 12 {
				create(t, cluster, blocks, "", fmt.Sprintf("b%d", step))
				cluster.Expire(widgets)
			}
			refused = false
			cluster.Intercept(nil)
			time.Sleep(5 * time.Minute) // client-go's longest pause is a minute
		default:
			err = nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		changed[name] = changed[name] || operation < 8
		if !refused {
			time.Sleep(time.Duration(r.IntN(90)) * time.Second)
			synctest.Wait()
			compare(step, fmt.Sprint("operation ", operation))
		}
	}
}
