package dynamicinformer_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// Two types, one with namespaces and one without.
var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	blocks  = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}

	widgetType = fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}
	blockType  = fakecluster.Type{GVR: blocks, Kind: "IPAMBlock"}
)

// packedCaches says that all factories have packed caches. Two expectations of tests differ then: WithoutSharing has no effect, since packed
// objects always share equal parts; and no lease conflicts with another one by WithPackedCache, since all have it.
var packedCaches = os.Getenv("GVRKIT_PACKED_CACHES") == "true"

func newObject(name string, labels map[string]string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetName(name)
	obj.SetLabels(labels)
	return obj
}

// create creates an object without labels. For cluster-scoped types, namespace is "".
func create(t *testing.T, client dynamic.Interface, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := client.Resource(gvr).Namespace(namespace).Create(t.Context(), newObject(name, nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s/%s: %v", namespace, name, err)
	}
	return obj
}

func newFactory(t *testing.T, client dynamic.Interface, opts ...dynamicinformer.Option) *dynamicinformer.Factory {
	t.Helper()
	f, err := dynamicinformer.New(client, opts...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return f
}

func withDiscovery(t *testing.T, cluster *fakecluster.Cluster) dynamicinformer.Option {
	t.Helper()
	resolver, err := discovery.NewFromDiscovery(cluster.Discovery())
	if err != nil {
		t.Fatalf("NewFromDiscovery: %v", err)
	}
	return dynamicinformer.WithDiscovery(resolver)
}

// start starts f with ctx and waits until all goroutines are idle.
func start(ctx context.Context, f *dynamicinformer.Factory) {
	f.Start(ctx)
	synctest.Wait()
}

// shutdown shuts f down. In a bubble, the hour passes at once if something does not end.
func shutdown(t *testing.T, f *dynamicinformer.Factory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := f.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

// recorder is an event handler that records its events, as "add ns/name".
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) record(event string, obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		key = fmt.Sprintf("%T: %v", obj, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event+" "+key)
}

func (r *recorder) OnAdd(obj any, _ bool) { r.record("add", obj) }
func (r *recorder) OnUpdate(_, obj any)   { r.record("update", obj) }
func (r *recorder) OnDelete(obj any)      { r.record("delete", obj) }
func (r *recorder) OnMoved(obj any)       { r.record("move", obj) }

// take returns the events since the last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

// listen adds a recorder to informer.
func listen(t *testing.T, informer cache.SharedIndexInformer) *recorder {
	t.Helper()
	r := &recorder{}
	if _, err := informer.AddEventHandler(r); err != nil {
		t.Fatalf("AddEventHandler: %v", err)
	}
	return r
}

// checkRetry checks that l is synced at once after Retry.
func checkRetry(t *testing.T, l *dynamicinformer.Lease) {
	t.Helper()
	begun := time.Now()
	l.Retry()
	if err := l.WaitForSync(t.Context()); err != nil || time.Since(begun) != 0 {
		t.Errorf("after Retry: %v, %v later", err, time.Since(begun))
	}
}

// fewer returns the number of random sequences of a test, which is smaller with -short.
func fewer(seeds int) int {
	if testing.Short() {
		return seeds / 4
	}
	return seeds
}
