package controllerruntime

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/controllerruntime/internal/settings"
	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	blocks  = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}

	widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	blockKind  = schema.GroupVersionKind{Group: "crd.projectcalico.org", Version: "v1", Kind: "IPAMBlock"}

	widgetType = fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}
	blockType  = fakecluster.Type{GVR: blocks, Kind: "IPAMBlock"}
)

// Widget is the Go type of widgets.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Size int32 `json:"size,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	other := &Widget{TypeMeta: w.TypeMeta, Size: w.Size}
	w.DeepCopyInto(&other.ObjectMeta)
	return other
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	other := &WidgetList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for _, item := range l.Items {
		other.Items = append(other.Items, *item.DeepCopyObject().(*Widget))
	}
	return other
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(widgetKind.GroupVersion(), &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, widgetKind.GroupVersion())
	return scheme
}

// world is a cluster with a cache, which runs, in a synctest bubble.
type world struct {
	*testing.T
	*fakecluster.Cluster
	cache *Cache
	ctx   context.Context //nolint:containedctx // the context of a test
	stop  func()          // stops the cache, and waits for it
}

// served are the types that a cluster serves.
type served []fakecluster.Type

// in runs a test in a bubble. The cache has opts and options.
func in(t *testing.T, types served, opts cache.Options, options []Option, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(types...)
		w := &world{T: t, Cluster: cluster, cache: makeCache(t, cluster, opts, options...)}
		var cancel context.CancelFunc
		w.ctx, cancel = context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.cache.Start(w.ctx) }()
		w.stop = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Start: %v", err)
			}
		})
		defer w.stop()
		synctest.Wait()
		test(w)
	})
}

func makeCache(t *testing.T, cluster *fakecluster.Cluster, opts cache.Options, options ...Option) *Cache {
	t.Helper()
	resolver, err := discovery.NewFromDiscovery(cluster.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	opts.Scheme, opts.Mapper = newScheme(), resolver.RESTMapper()
	o := newOptions(append(options, WithFactoryOptions(dynamicinformer.WithDiscovery(resolver))))
	opts, err = settings.Default(&rest.Config{}, opts, o.allowAbsent)
	if err != nil {
		t.Fatal(err)
	}
	factory, err := dynamicinformer.New(cluster, o.ofFactory(&opts)...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCache(factory, nil, &opts, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create creates a widget, or another object of gvr.
func (w *world) create(gvr schema.GroupVersionResource, namespace, name string, size int64) {
	w.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"size": size}}
	object.SetName(name)
	object.SetLabels(map[string]string{"name": name})
	if _, err := w.Resource(gvr).Namespace(namespace).Create(w.ctx, object, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) informer(object client.Object, opts ...cache.InformerGetOption) cache.Informer {
	w.Helper()
	i, err := w.cache.GetInformer(w.ctx, object, opts...)
	if err != nil {
		w.Fatal(err)
	}
	return i
}

// names returns the names of the widgets that a List with opts returns, sorted.
func (w *world) names(opts ...client.ListOption) []string {
	w.Helper()
	var list WidgetList
	if err := w.cache.List(w.within(), &list, opts...); err != nil {
		w.Fatal(err)
	}
	names := []string{}
	for _, item := range list.Items {
		if item.Kind != "Widget" {
			w.Errorf("the kind of %s is %q", item.Name, item.Kind)
		}
		names = append(names, item.Name)
	}
	slices.Sort(names)
	return names
}

// within returns a context that ends after a minute.
func (w *world) within() context.Context {
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	w.Cleanup(cancel)
	return ctx
}

// recorder is an event handler that records its events, as "add *T ns/name".
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) record(event string, object any) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		key = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%s %T %s", event, object, key))
}

func (r *recorder) OnAdd(object any, _ bool) { r.record("add", object) }
func (r *recorder) OnUpdate(_, object any)   { r.record("update", object) }
func (r *recorder) OnDelete(object any)      { r.record("delete", object) }

// take returns the events since the last call, sorted.
func (r *recorder) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	slices.Sort(events)
	return events
}

// listen adds a recorder to i.
func listen(t *testing.T, i cache.Informer) (*recorder, toolscache.ResourceEventHandlerRegistration) {
	t.Helper()
	r := &recorder{}
	registration, err := i.AddEventHandler(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, registration
}

// newUnstructured returns an empty object of a kind.
func newUnstructured(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// newMetadata returns empty metadata of a kind.
func newMetadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	return object
}

// hanging makes a cluster not respond to requests in a namespace.
func hanging(namespace string) fakecluster.Interceptor {
	return func(ctx context.Context, request fakecluster.Request) error {
		if request.Namespace == namespace {
			<-ctx.Done()
		}
		return nil
	}
}
