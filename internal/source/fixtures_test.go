package source_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/source"
)

// Two types, one with namespaces and one without.
var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	blocks  = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}
)

// request is a request to a script.
type request struct {
	Verb      string
	GVR       schema.GroupVersionResource
	Namespace string
	Options   metav1.ListOptions
}

// script is a dynamic client with functions for its responses. Without them, a list is empty,
// and a watch has no events.
type script struct {
	list  func(ctx context.Context) (*unstructured.UnstructuredList, error)
	watch func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)

	mu  sync.Mutex
	got []request
}

func (s *script) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &scripted{script: s, gvr: gvr}
}

func (s *script) record(req request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, req)
}

// requests returns the requests so far.
func (s *script) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.got...)
}

type scripted struct {
	dynamic.NamespaceableResourceInterface // nil: other methods panic
	script                                 *script
	gvr                                    schema.GroupVersionResource
	namespace                              string
}

func (s *scripted) Namespace(namespace string) dynamic.ResourceInterface {
	return &scripted{script: s.script, gvr: s.gvr, namespace: namespace}
}

func (s *scripted) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	s.script.record(request{"list", s.gvr, s.namespace, opts})
	if s.script.list == nil {
		return &unstructured.UnstructuredList{}, nil
	}
	return s.script.list(ctx)
}

func (s *scripted) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.script.record(request{"watch", s.gvr, s.namespace, opts})
	if s.script.watch == nil {
		return watch.NewFake(), nil
	}
	return s.script.watch(ctx, opts)
}

// always responds to each watch with w or err.
func always(w watch.Interface, err error) func(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return func(context.Context, metav1.ListOptions) (watch.Interface, error) { return w, err }
}

// newServerWatch returns a watch whose server side never blocks. Its Stop is also the end of
// the stream by the server.
func newServerWatch() *watch.FakeWatcher {
	return watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 100})
}

// endedWatch returns a watch that the server has ended.
func endedWatch() watch.Interface {
	ended := newServerWatch()
	ended.Stop()
	return ended
}

// observer records reports.
type observer struct {
	mu   sync.Mutex
	said []string
	errs []error
	// whenCompleted is called by Completed; nil: nothing is.
	whenCompleted func()
}

func (o *observer) note(report string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = append(o.said, report)
	if err != nil {
		o.errs = append(o.errs, err)
	}
}

func (o *observer) Failed(verb string, err error) { o.note(verb+" failed", err) }
func (o *observer) Succeeded(verb string)         { o.note(verb+" succeeded", nil) }

func (o *observer) Received(int) {}
func (o *observer) Doubted()     {}

func (o *observer) Completed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.whenCompleted != nil {
		o.whenCompleted()
	}
}

// reports returns the reports to the observer, in order.
func (o *observer) reports() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.said...)
}

// errors returns the reported errors.
func (o *observer) errors() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]error(nil), o.errs...)
}

// newLW returns the requests stage of cfg, which is behind the gate.
func newLW(cfg source.Config) cache.ListerWatcherWithContext { return source.NewRequests(cfg) }

// gateOf returns s as a ListerWatcher for a reflector.
func gateOf(s *source.Source) cache.ListerWatcherWithContext {
	return cache.ToListerWatcherWithContext(s.ListerWatcher())
}

// watchList returns the options of a reflector's watch-list request.
func watchList() metav1.ListOptions {
	return metav1.ListOptions{
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
		SendInitialEvents:    new(true),
	}
}

// startWatchList sends a list through the gate of s as a reflector does that prefers a watch-list.
func startWatchList(ctx context.Context, s *source.Source) <-chan answer {
	if w, err := gateOf(s).WatchWithContext(ctx, watchList()); err == nil {
		w.Stop()
		return nil
	}
	return startList(ctx, s)
}

// openWatch opens a watch that ends with the test.
func openWatch(t *testing.T, lw cache.ListerWatcherWithContext, opts metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := lw.WatchWithContext(t.Context(), opts)
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	t.Cleanup(w.Stop)
	return w
}

// take returns the events that w can send now, which are all events before time passes or the
// server sends another one.
func take(w watch.Interface) []watch.Event {
	var events []watch.Event
	for len(events) < 1000 { // more than any test has; ends a watch that repeats events
		synctest.Wait()
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return append(events, watch.Event{Type: closed})
			}
			events = append(events, event)
		default:
			return events
		}
	}
	return events
}

const (
	// closed is the type of the event for the end of a stream.
	closed watch.EventType = "CLOSED"
	// failed is what seen returns for the failure of a watch-list.
	failed = "ERROR plain"
)

// seen returns the events of take as strings.
func seen(w watch.Interface) []string {
	var words []string
	for _, event := range take(w) {
		switch obj := event.Object.(type) {
		case nil:
			words = append(words, string(event.Type))
		case *unstructured.Unstructured:
			words = append(words, fmt.Sprintf("%s %s", event.Type, obj.GetName()))
		default:
			reason := apierrors.ReasonForError(apierrors.FromObject(obj))
			words = append(words, fmt.Sprintf("%s %s", event.Type, cmp.Or(string(reason), "plain")))
		}
	}
	return words
}

func newObject(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetName(name)
	obj.SetNamespace("ns")
	obj.SetResourceVersion("1")
	return obj
}

// newBookmark returns a bookmark. It ends initial events if mark is "true".
func newBookmark(mark string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetResourceVersion("1")
	if mark != "" {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: mark})
	}
	return obj
}

// fewer returns the number of random sequences of a test, which is smaller with -short.
func fewer(seeds int) int {
	if testing.Short() {
		return seeds / 4
	}
	return seeds
}

// ofMetadata is a client of metadata. As in Protocol Buffers of an API server, objects have a kind in events, and not in lists.
type ofMetadata struct{ source.Client }

func (c ofMetadata) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	whole, err := c.Client.List(ctx, gvr, namespace, opts)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.ResourceVersion = whole.(*unstructured.UnstructuredList).GetResourceVersion()
	return list, meta.EachListItem(whole, func(item runtime.Object) error {
		list.Items = append(list.Items, *meta.AsPartialObjectMetadata(item.(metav1.Object)))
		return nil
	})
}

func (c ofMetadata) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	in, err := c.Client.Watch(ctx, gvr, namespace, opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(in, func(event watch.Event) (watch.Event, bool) {
		if whole, is := event.Object.(*unstructured.Unstructured); is {
			object := meta.AsPartialObjectMetadata(whole)
			object.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
			event.Object = object
		}
		return event, true
	}), nil
}

func (c ofMetadata) New(schema.GroupVersionKind) source.Object {
	return &metav1.PartialObjectMetadata{}
}

func (c ofMetadata) KeepsKind() bool { return false }
