package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// keeper is a handler that keeps the versions of the objects that it has.
type keeper struct {
	*testing.T
	kind
	as     representation
	of     cache.Informer
	handle toolscache.ResourceEventHandlerRegistration

	mu      sync.Mutex
	has     map[string]string
	removed bool
}

func (h *keeper) OnAdd(obj any, _ bool) { h.change("add", obj, false) }
func (h *keeper) OnUpdate(old, obj any) {
	h.change("update", old, true)
	h.change("update", obj, true)
}
func (h *keeper) OnDelete(obj any) { h.change("delete", obj, true) }

// change is an event of an object that the handler has, or has not.
func (h *keeper) change(event string, obj any, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	object, is := obj.(client.Object)
	if !is || representationOf(object) != h.as {
		h.Errorf("%s of %s has a %T", event, h.as, obj)
		return
	}
	key := toolscache.MetaObjectToName(object).String()
	if _, has := h.has[key]; has != known || h.removed {
		h.Errorf("%s %s %s: the handler has it: %v, is removed: %v", event, h.Kind, key, has, h.removed)
	}
	h.has[key] = object.GetResourceVersion()
	if event == "delete" {
		delete(h.has, key)
	}
}

func (h *keeper) content() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.has)
}

// end says that the handler has been removed, and that no call runs that had begun before.
func (h *keeper) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = true
}

// changingTypes runs random operations on a cache of kinds that are installed and removed.
type changingTypes struct {
	*world
	kinds []kind
	multi bool // the cache has the namespaces a and b

	mu      sync.Mutex
	served  map[string]bool // by kind
	keepers []*keeper
	removed []*keeper // since the last check
}

func typeOf(k kind) fakecluster.Type {
	return fakecluster.Type{GVR: k.GroupVersionResource, Kind: k.Kind, Namespaced: k.namespaced}
}

// newChangingTypes returns a cache with WithAllowAbsent and random options. In a cache with namespaces, a kind that is absent is taken for a
// namespaced one.
func newChangingTypes(t *testing.T, r *rand.Rand) *changingTypes {
	t.Helper()
	w := &changingTypes{world: &world{T: t}, kinds: kinds[:3], multi: r.IntN(3) == 0, served: map[string]bool{}}
	opts := cache.Options{Scheme: newGizmoScheme(t)}
	if w.multi {
		opts.DefaultNamespaces = map[string]cache.Config{"a": {}, "b": {}}
		w.kinds = slices.DeleteFunc(slices.Clone(w.kinds), func(k kind) bool { return !k.namespaced })
	}
	types := []fakecluster.Type{blockType} // a server always has a group
	for _, k := range w.kinds {
		if r.IntN(2) == 0 {
			types, w.served[k.Kind] = append(types, typeOf(k)), true
		}
	}
	w.Cluster = fakecluster.New(types...)
	opts.HTTPClient = &http.Client{Transport: transport{w.Cluster, &sync.Map{}}}
	options := []Option{WithAllowAbsent()}
	for _, option := range []Option{WithPackedCaches(), WithFailFast()} {
		if r.IntN(2) == 0 {
			options = append(options, option)
		}
	}
	var err error
	if w.cache, err = New(&rest.Config{Host: "http://cluster", QPS: -1}, opts, options...); err != nil {
		t.Fatal(err)
	}
	return w
}

// change installs or removes a type.
func (w *changingTypes) change(k kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.served[k.Kind] = !w.served[k.Kind]; w.served[k.Kind] {
		w.Serve(typeOf(k))
	} else {
		w.Withdraw(k.GroupVersionResource)
	}
}

// write creates, updates or deletes an object, if its type is served and no other goroutine does.
func (w *changingTypes) write(r *rand.Rand, k kind) {
	namespace, name := "", fmt.Sprintf("n%d", r.IntN(4))
	if k.namespaced {
		namespace = one(r, namespaceNames...)
	}
	to := w.Resource(k.GroupVersionResource).Namespace(namespace)
	object, err := to.Get(w.ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		object := newUnstructured(k.GroupVersionKind)
		object.SetName(name)
		_, _ = to.Create(w.ctx, object, metav1.CreateOptions{})
	case r.IntN(2) == 0:
		_ = to.Delete(w.ctx, name, metav1.DeleteOptions{})
	default:
		object.Object["size"] = int64(r.IntN(10))
		_, _ = to.Update(w.ctx, object, metav1.UpdateOptions{})
	}
}

// wasRemoved reports whether another goroutine has removed the informer meanwhile.
func wasRemoved(err error) bool {
	return reasonOf(err) == status.ReasonStopped || errors.Is(err, dynamicinformer.ErrReleased)
}

func (w *changingTypes) read(k kind, as representation) {
	if err := w.cache.Get(w.within(), client.ObjectKey{Namespace: "a", Name: "n1"}, k.in(as)); err != nil && !apierrors.IsNotFound(err) && !wasRemoved(err) {
		w.Errorf("Get of %s %s: %v", as, k.Kind, err)
	}
	if err := w.cache.List(w.within(), k.listIn(as), client.Limit(2)); err != nil && !wasRemoved(err) {
		w.Errorf("List of %s %s: %v", as, k.Kind, err)
	}
}

// handle adds a handler.
func (w *changingTypes) handle(k kind, as representation, blocks bool) {
	i, err := w.cache.GetInformer(w.within(), k.in(as), cache.BlockUntilSynced(blocks))
	if err != nil {
		if !wasRemoved(err) {
			w.Errorf("GetInformer of %s %s: %v", as, k.Kind, err)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := &keeper{T: w.T, kind: k, as: as, of: i, has: map[string]string{}}
	if h.handle, err = i.AddEventHandler(h); err == nil {
		w.keepers = append(w.keepers, h)
	} else if !i.IsStopped() {
		w.Errorf("AddEventHandler of %s %s: %v", as, k.Kind, err)
	}
}

// unhandle removes a handler.
func (w *changingTypes) unhandle(r *rand.Rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.keepers) == 0 {
		return
	}
	n := r.IntN(len(w.keepers))
	if err := w.keepers[n].of.RemoveEventHandler(w.keepers[n].handle); err != nil {
		w.Errorf("RemoveEventHandler: %v", err)
	}
	w.removed = append(w.removed, w.keepers[n])
	w.keepers = slices.Delete(w.keepers, n, n+1)
}

// remove removes an informer.
func (w *changingTypes) remove(k kind, as representation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.cache.RemoveInformer(w.ctx, k.in(as)); err != nil {
		w.Errorf("RemoveInformer: %v", err)
	}
	w.keepers = slices.DeleteFunc(w.keepers, func(h *keeper) bool {
		if h.as != as || h.Kind != k.Kind {
			return false
		}
		w.removed = append(w.removed, h)
		if !h.of.IsStopped() {
			w.Errorf("the informer of %s %s has been removed, and has not stopped", as, k.Kind)
		}
		return true
	})
}

// index indexes a field.
func (w *changingTypes) index(k kind, as representation, field string) {
	err := w.cache.IndexField(w.ctx, k.in(as), field, valuesOf("name"))
	if err != nil && !strings.Contains(err.Error(), "indexer conflict") && !strings.Contains(err.Error(), "stopped") {
		w.Errorf("IndexField of %s %s: %v", as, k.Kind, err)
	}
}

// step is a random operation.
func (w *changingTypes) step(r *rand.Rand) {
	k, as := one(r, w.kinds...), one(r, forms...)
	switch n := r.IntN(20); {
	case n < 2:
		w.change(k)
	case n < 9:
		w.write(r, k)
	case n < 12:
		w.read(k, as)
	case n < 16:
		w.handle(k, as, r.IntN(2) == 0)
	case n == 16:
		w.unhandle(r)
	case n == 17:
		w.remove(k, as)
	case n == 18:
		w.index(k, as, fmt.Sprint(r.IntN(10)))
	default:
		w.CloseWatches(k.GroupVersionResource)
		if r.IntN(2) == 0 {
			w.Expire(k.GroupVersionResource)
		}
	}
}

// content returns the versions of objects.
func (w *changingTypes) content(objects []client.Object) map[string]string {
	content := map[string]string{}
	for _, object := range objects {
		content[toolscache.MetaObjectToName(object).String()] = object.GetResourceVersion()
	}
	return content
}

// onServer returns the objects that a cache should have.
func (w *changingTypes) onServer(k kind) (objects []client.Object) {
	list, err := w.Resource(k.GroupVersionResource).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for n := range list.Items {
		if !w.multi || list.Items[n].GetNamespace() != "c" {
			objects = append(objects, &list.Items[n])
		}
	}
	return objects
}

// check compares what handlers have and lists return with the server's objects.
func (w *changingTypes) check() {
	w.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	for _, h := range w.removed {
		h.end()
	}
	w.removed = nil
	for _, k := range w.kinds {
		want := w.content(w.onServer(k))
		for _, h := range w.keepers {
			if diff := cmp.Diff(want, h.content()); h.Kind == k.Kind && diff != "" {
				w.Errorf("a handler of %s %s (-server +handler):\n%s", h.as, k.Kind, diff)
			}
		}
		for _, as := range forms {
			list := k.listIn(as)
			if err := w.cache.List(w.within(), list); err != nil {
				w.Errorf("List of %s %s: %v", as, k.Kind, err)
			}
			items, _ := meta.ExtractList(list)
			var objects []client.Object
			for _, item := range items {
				objects = append(objects, item.(client.Object))
			}
			if diff := cmp.Diff(want, w.content(objects)); diff != "" {
				w.Errorf("a list of %s %s (-server +list):\n%s", as, k.Kind, diff)
			}
		}
	}
}

// run runs rounds of operations in a number of goroutines.
func (w *changingTypes) run(r *rand.Rand, goroutines int) {
	var stop context.CancelFunc
	w.ctx, stop = context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.cache.Start(w.ctx) }()
	synctest.Wait()
	for range 4 {
		var running sync.WaitGroup
		for range goroutines {
			own := rand.New(rand.NewPCG(r.Uint64(), 1)) //nolint:gosec // test data
			running.Go(func() {
				for range 20 {
					w.step(own)
					if own.IntN(3) == 0 {
						time.Sleep(time.Duration(own.Int64N(int64(30 * time.Second))))
					}
				}
			})
		}
		running.Wait()
		w.check()
	}
	stop()
	if err := <-ended; err != nil {
		w.Error(err)
	}
}

// After random operations in several goroutines, handlers and lists have the objects of the server, with kinds that are installed, removed and
// installed again.
func TestCache_TypesThatChange(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 12)) //nolint:gosec // test data
				newChangingTypes(t, r).run(r, 1+3*int(seed%2))
			})
		})
	}
}
