package source_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// testInformer is a cluster with widgets, the state of their type, and an informer on them that
// has synced, with a handler.
type testInformer struct {
	*run
	t         *testing.T
	cluster   *fakecluster.Cluster
	available *source.Availability
	observer  *observer
	handler   *handler
}

// newTestInformer returns a testInformer with widgets of these names. modify, if it is not nil,
// changes the configuration of the source.
func newTestInformer(t *testing.T, modify func(*source.Config), names ...string) *testInformer {
	t.Helper()
	w := &testInformer{t: t, cluster: fakecluster.New(widgetType), available: newAvailability(source.Served), observer: &observer{}, handler: &handler{}}
	w.create(names...)
	cfg := source.Config{Client: source.Unstructured(w.cluster), GVR: widgets, Availability: w.available, Observer: w.observer}
	if modify != nil {
		modify(&cfg)
	}
	w.run = runInformer(t, cfg)
	if _, err := w.AddEventHandler(w.handler); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	w.handler.take()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *testInformer) create(names ...string) {
	w.t.Helper()
	for _, name := range names {
		create(w.t, w.cluster, "ns", name, "red")
	}
}

func (w *testInformer) remove(names ...string) {
	w.t.Helper()
	for _, name := range names {
		if err := w.cluster.Resource(widgets).Namespace("ns").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *testInformer) setColor(name, color string) {
	w.t.Helper()
	client := w.cluster.Resource(widgets).Namespace("ns")
	obj, err := client.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	obj.SetLabels(map[string]string{"color": color})
	if _, err := client.Update(w.t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// deleteType deletes the CRD without events for its objects. createType creates another CRD after
// that.
func (w *testInformer) deleteType() {
	w.cluster.Withdraw(widgets)
	set(w.available, source.Gone)
}

func (w *testInformer) createType() {
	w.cluster.Serve(widgetType)
	now, _ := w.available.Current()
	now.Serving = source.Served
	now.Generation++
	w.available.Set(now)
}

// expect compares the events of the handler since the last call.
func (w *testInformer) expect(when string, want ...string) {
	w.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, w.handler.take()); diff != "" {
		w.t.Errorf("%s the handler got (-want +got):\n%s", when, diff)
	}
}

// handler records its events, with both colors of an update.
type handler struct {
	mu   sync.Mutex
	got  []string
	gone []metav1.Object
}

func (h *handler) OnAdd(obj any, _ bool) { h.note("add " + short(obj)) }

func (h *handler) OnUpdate(old, obj any) {
	text := "update " + short(old) + " to " + short(obj)
	if was, is := old.(metav1.Object), obj.(metav1.Object); was.GetUID() != is.GetUID() {
		text += ", another object"
	}
	h.note(text)
}

func (h *handler) OnDelete(obj any) {
	if _, unknown := obj.(cache.DeletedFinalStateUnknown); unknown {
		h.note("delete something")
		return
	}
	h.note("delete " + short(obj))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = append(h.gone, obj.(metav1.Object))
}

func (h *handler) note(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, event)
}

func (h *handler) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	got := h.got
	h.got = nil
	return got
}

// short returns the name and color of an object.
func short(obj any) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Sprint(err)
	}
	return accessor.GetName() + " " + accessor.GetLabels()["color"]
}

// failing makes requests with verb fail with err, except for the first requests, up to the number
// but.
func failing(verb string, err error, but int) fakecluster.Interceptor {
	var seen atomic.Int64
	return func(_ context.Context, req fakecluster.Request) error {
		if req.Verb != verb || seen.Add(1) <= int64(but) {
			return nil
		}
		return err
	}
}
