package dynamicinformer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// typedWidget is the Go type of a widget.
type typedWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec typedWidgetSpec `json:"spec"`
}

type typedWidgetSpec struct {
	Size  int64               `json:"size"`
	Slots []*int              `json:"slots,omitempty"`
	Ports *[]int              `json:"ports,omitempty"`
	Port  intstr.IntOrString  `json:"port,omitzero"`
	Since *metav1.Time        `json:"since,omitempty"`
	Sizes map[string]*float64 `json:"sizes,omitempty"`
}

func (w *typedWidget) DeepCopyObject() runtime.Object {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// shorthand is the description of w in tests.
func shorthand(w *typedWidget) string {
	return fmt.Sprintf("%s/%s %d", w.Namespace, w.Name, w.Spec.Size)
}

// typedEvents is a handler that records events.
type typedEvents struct{ happened chan string }

func (e *typedEvents) OnAdd(w *typedWidget, _ bool) { e.happened <- "add " + shorthand(w) }
func (e *typedEvents) OnUpdate(old, w *typedWidget) {
	e.happened <- "update " + shorthand(old) + " to " + shorthand(w)
}

func (e *typedEvents) OnDelete(w cache.DeletedObject[*typedWidget]) {
	e.happened <- "delete " + shorthand(w.OptionalObj)
}

func widgetJSON(name string, version int, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":"ns","uid":"u-%s","resourceVersion":"%d"},"spec":%s}`, name, name, version, spec)
}

// exactSpec has what a decoder can get wrong.
const exactSpec = `{"size":1152921504606846977,"slots":[null,0,3],"ports":null,"port":"http","since":"2026-01-02T03:04:05Z","sizes":{"a":1.5,"b":null},"unknown":{"deep":[1]},"Size":7}`

// typedServer serves widgets whose events a test sends.
type typedServer struct {
	*stubserver.Server
	events chan string
	form   *strings.Replacer // of the objects; nil: they are whole

	mu      sync.Mutex
	initial []string
}

// set changes the objects of later lists.
func (s *typedServer) set(initial ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initial = initial
}

// formed returns text in the form of the objects.
func (s *typedServer) formed(text string) string {
	if s.form == nil {
		return text
	}
	return s.form.Replace(text)
}

func (s *typedServer) answer(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	initial := s.initial
	s.mu.Unlock()
	if query.Get("watch") == "" {
		stubserver.JSON(s.formed(stubserver.WidgetList(initial...)))(w, r)
		return
	}
	stubserver.SetContentType(w, "application/json")
	if query.Get("sendInitialEvents") != "" {
		fmt.Fprint(w, s.formed(frames("ADDED", initial)+stubserver.Event("BOOKMARK", stubserver.Bookmark)))
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case event := <-s.events:
			if event == "" {
				return // the server ends the watch
			}
			fmt.Fprint(w, s.formed(event))
		case <-r.Context().Done():
			return
		}
	}
}

func TestAcquireTyped_DecodesToTheType(t *testing.T) {
	for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever} {
		t.Run(policy.String(), func(t *testing.T) {
			s := &typedServer{Server: stubserver.New(t), events: make(chan string), initial: []string{
				widgetJSON("exact", 2, exactSpec), widgetJSON("bad", 3, `{"size":"large"}`), widgetJSON("plain", 4, `{"size":1}`),
			}}
			s.Prepare(s.answer)
			f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil), dynamicinformer.WithWatchListPolicy(policy))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) }()
			f.Start(t.Context())
			l, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets)
			if err != nil {
				t.Fatal(err)
			}
			checkTyped(t, l, func(kind, object string) { s.events <- stubserver.Event(kind, object) })
		})
	}
}

// checkTyped checks a lease on the widgets exact, bad and plain. send sends an event.
func checkTyped(t *testing.T, l *dynamicinformer.TypedLease[*typedWidget], send func(kind, object string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	if got := l.Status(); got.State != status.StateDegraded || got.Reason != status.ReasonDecodeFailed || got.FailedObjects != 1 ||
		got.LastFailed != "ns/bad" || got.Objects != 2 || !strings.Contains(got.Err.Error(), "size") || got.Form != "*dynamicinformer_test.typedWidget" {
		t.Errorf("status: %+v", got)
	}
	exact, err := listers.NewNamespaced(l.Lister(), "ns").Get("exact")
	if err != nil {
		t.Fatal(err)
	}
	zero, three, sized := 0, 3, 1.5
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	want := &typedWidget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
		ObjectMeta: metav1.ObjectMeta{Name: "exact", Namespace: "ns", UID: "u-exact", ResourceVersion: "2"},
		Spec: typedWidgetSpec{
			Size: 1<<60 + 1, Slots: []*int{nil, &zero, &three}, Port: intstr.FromString("http"), Since: &since,
			Sizes: map[string]*float64{"a": &sized, "b": nil},
		},
	}
	if diff := cmp.Diff(want, exact); diff != "" {
		t.Errorf("the object (-want +got):\n%s", diff)
	}
	events := &typedEvents{happened: make(chan string, 10)}
	if _, err := l.Informer().AddTypedEventHandler(events); err != nil {
		t.Fatal(err)
	}
	next := func(want ...string) {
		t.Helper()
		for range want {
			select {
			case got := <-events.happened:
				if !strings.Contains(strings.Join(want, "\n"), got) {
					t.Errorf("event %q, want one of %q", got, want)
				}
			case <-ctx.Done():
				t.Fatalf("no event, want one of %q", want)
			}
		}
	}
	next("add ns/exact 1152921504606846977", "add ns/plain 1")
	send("MODIFIED", widgetJSON("bad", 13, `{"size":2}`))
	next("add ns/bad 2")
	send("MODIFIED", widgetJSON("plain", 14, `{"size":{}}`))
	send("MODIFIED", widgetJSON("exact", 15, `{"size":5}`))
	next("update ns/exact 1152921504606846977 to ns/exact 5")
	if got := l.Status(); got.FailedObjects != 1 || got.LastFailed != "ns/plain" || got.Objects != 3 {
		t.Errorf("one that was good can't be decoded: %+v", got)
	}
	send("ADDED", widgetJSON("never", 16, `[]`))
	send("DELETED", widgetJSON("never", 17, `[]`))
	send("DELETED", widgetJSON("plain", 18, `{"size":{}}`))
	next("delete ns/plain 1")
	send("DELETED", widgetJSON("bad", 19, `{"size":2}`))
	next("delete ns/bad 2")
	for { // an object counts until its deletion has been sent
		got := l.Status()
		if got.State == status.StateSynced && got.FailedObjects == 0 && got.Objects == 1 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("without bad objects: %+v", got)
		}
		goruntime.Gosched()
	}
	if all, err := l.Lister().List(labels.Everything()); err != nil || len(all) != 1 {
		t.Errorf("the lister has %v, %v", all, err)
	}
	_, typedErr := listers.NewNamespaced(l.Lister(), "ns").Get("none")
	_, genericErr := l.Lease.Lister().ByNamespace("ns").Get("none")
	const notFound = `widgets.example.com "none" not found`
	if fmt.Sprint(typedErr) != notFound || fmt.Sprint(genericErr) != notFound {
		t.Errorf("errors for a missing object: %v, %v, want %s", typedErr, genericErr, notFound)
	}
}

// Nulls in lists and integers up to the limits of int64 are kept from the response to JSON again. An integer beyond is
// rounded in an unstructured object, as with client-go, and a Go type does not fit it.
func TestAcquire_KeepsNullsAndIntegers(t *testing.T) {
	same := dynamicinformer.WithTransform(func(obj any) (any, error) { return obj, nil })
	specs := map[string]string{
		"precise": `{"size":9007199254740993,"slots":[null,0,null,1]}`,
		"largest": `{"size":9223372036854775807,"slots":[0,null]}`,
		"least":   `{"size":-9223372036854775808}`,
	}
	for name, form := range map[string]struct {
		acquire func(f *dynamicinformer.Factory) *dynamicinformer.Lease
		failed  uint64
	}{
		"unstructured": {func(f *dynamicinformer.Factory) *dynamicinformer.Lease { return acquire(t, f, widgets, same) }, 0},
		"a Go type": {func(f *dynamicinformer.Factory) *dynamicinformer.Lease {
			l, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets, same)
			if err != nil {
				t.Fatal(err)
			}
			return l.Lease
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			initial := []string{widgetJSON("beyond", 2, `{"size":9223372036854775808}`)}
			for name, spec := range specs {
				initial = append(initial, widgetJSON(name, 3, spec))
			}
			s := serveForm(t, nil, initial, form.acquire)
			s.sync(t)
			awaitStatus(t, s.lease, "only the object beyond int64 may be left out", failed(form.failed))
			for name, want := range specs {
				obj, err := s.lease.Lister().ByNamespace("ns").Get(name)
				if err != nil {
					t.Fatal(err)
				}
				encoded, err := json.Marshal(obj.DeepCopyObject())
				if err != nil {
					t.Fatal(err)
				}
				var got struct{ Spec json.RawMessage }
				if err := json.Unmarshal(encoded, &got); err != nil || string(got.Spec) != want {
					t.Errorf("%s: %s, %v, want %s", name, got.Spec, err, want)
				}
			}
			beyond, err := s.lease.Lister().ByNamespace("ns").Get("beyond")
			if form.failed > 0 {
				if !apierrors.IsNotFound(err) || s.lease.Status().LastFailed != "ns/beyond" {
					t.Errorf("beyond int64: %v, %v", beyond, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if size := beyond.(*unstructured.Unstructured).Object["spec"].(map[string]any)["size"]; size != float64(1<<63) {
				t.Errorf("beyond int64: %T %v", size, size)
			}
		})
	}
}

// A factory of New converts the objects of its client.
func TestAcquireTyped_ConvertsTheObjectsOfAClient(t *testing.T) {
	s := &typedServer{Server: stubserver.New(t), events: make(chan string), initial: []string{
		widgetJSON("exact", 2, exactSpec), widgetJSON("bad", 3, `{"size":"large"}`), widgetJSON("plain", 4, `{"size":1}`),
	}}
	s.Prepare(s.answer)
	client, err := dynamic.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	f, err := dynamicinformer.New(client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) }()
	f.Start(t.Context())
	l, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets)
	if err != nil {
		t.Fatal(err)
	}
	checkTyped(t, l, func(kind, object string) { s.events <- stubserver.Event(kind, object) })
}

// When the type of the objects goes, handlers get deletions of the Go type.
func TestAcquireTyped_OfATypeThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets)
		if err != nil {
			t.Fatal(err)
		}
		events := &typedEvents{happened: make(chan string, 10)}
		if _, err := l.Informer().AddTypedEventHandler(events); err != nil {
			t.Fatal(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Withdraw(widgets)
		time.Sleep(10 * time.Minute)
		var all []string
		for len(events.happened) > 0 {
			all = append(all, <-events.happened)
		}
		if diff := cmp.Diff([]string{"add ns/a 0", "delete ns/a 0"}, all); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

func TestAcquireTyped_SharesAnInformerByType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.Start(t.Context())
		one, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets)
		if err != nil {
			t.Fatal(err)
		}
		two, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets)
		if err != nil {
			t.Fatal(err)
		}
		other, err := dynamicinformer.AcquireTyped[*corev1.Pod](t.Context(), f, widgets)
		if err != nil {
			t.Fatal(err)
		}
		whole := acquire(t, f, widgets)
		byExample := acquire(t, f, widgets, dynamicinformer.WithMetadataOnly(), dynamicinformer.WithGoType(&typedWidget{}))
		ids := []uint64{one.Status().ID, two.Status().ID, other.Status().ID, whole.Status().ID, byExample.Status().ID}
		if ids[0] != ids[1] || ids[0] == ids[2] || ids[0] == ids[3] || ids[2] == ids[3] || ids[4] != ids[0] {
			t.Errorf("the informers are %v", ids)
		}
		shutdown(t, f)
	})
}

// valueWidget has the methods of an object, but can't be decoded.
type valueWidget struct{ *typedWidget }

func TestAcquireTyped_DoesNotWriteToTheOptions(t *testing.T) {
	f := newFactory(t, fakecluster.New(widgetType))
	opts := []dynamicinformer.LeaseOption{dynamicinformer.WithLeaseName("a"), dynamicinformer.WithLeaseName("b")}
	if _, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets, opts[:1]...); err != nil {
		t.Fatal(err)
	}
	if got := acquire(t, f, widgets, opts...).Status(); got.Form != "" || got.Owners[0].Name != "b" {
		t.Errorf("the form is %q, the owner %q", got.Form, got.Owners[0].Name)
	}
	shutdown(t, f)
}

func TestAcquireTyped_RefusesWhatIsNoTypeOfItsOwn(t *testing.T) {
	f, err := dynamicinformer.New(fakecluster.New(widgetType))
	if err != nil {
		t.Fatal(err)
	}
	for name, acquire := range map[string]func() error{
		"unstructured": func() error {
			_, err := dynamicinformer.AcquireTyped[*unstructured.Unstructured](t.Context(), f, widgets)
			return err
		},
		"metadata": func() error {
			_, err := dynamicinformer.AcquireTyped[*metav1.PartialObjectMetadata](t.Context(), f, widgets)
			return err
		},
		"no pointer": func() error {
			_, err := dynamicinformer.AcquireTyped[valueWidget](t.Context(), f, widgets)
			return err
		},
		"no example": func() error {
			_, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithGoType(nil))
			return err
		},
		"an example without metadata": func() error {
			_, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithGoType(&corev1.PodList{}))
			return err
		},
		"with metadata only": func() error {
			_, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets, dynamicinformer.WithMetadataOnly())
			return err
		},
	} {
		if err := acquire(); !errors.Is(err, dynamicinformer.ErrInvalidOption) {
			t.Errorf("%s: %v, want an OptionError", name, err)
		}
	}
}

// A type of k8s.io/api is that of one kind, in one version of one group.
func TestAcquireTyped_RefusesTheTypeOfAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := corev1.SchemeGroupVersion.WithResource("pods")
		events := eventsv1.SchemeGroupVersion.WithResource("events")
		cluster := fakecluster.New(widgetType, fakecluster.Type{GVR: events, Kind: "Event", Namespaced: true}, fakecluster.Type{GVR: pods, Kind: "Pod", Namespaced: true})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		_, err := dynamicinformer.AcquireTyped[*corev1.Pod](t.Context(), f, widgets)
		const text = "dynamicinformer: acquire: AcquireTyped: widgets.v1.example.com: *k8s.io/api/core/v1.Pod is not the Go type of example.com/v1 Widget"
		if !errors.Is(err, dynamicinformer.ErrInvalidOption) || err.Error() != text {
			t.Errorf("error %v, want %s", err, text)
		}
		if got := f.Status(); len(got) > 0 {
			t.Errorf("there is an informer: %+v", got)
		}
		if _, err := dynamicinformer.AcquireTyped[*corev1.Pod](t.Context(), f, pods); err != nil {
			t.Error(err)
		}
		if _, err := dynamicinformer.AcquireTyped[*corev1.Event](t.Context(), f, events); !errors.Is(err, dynamicinformer.ErrInvalidOption) {
			t.Errorf("an Event of another group: %v", err)
		}
		if _, err := dynamicinformer.AcquireTyped[*eventsv1.Event](t.Context(), f, events); err != nil {
			t.Error(err)
		}
		shutdown(t, f)
	})
}

// While the type is not known, any T is accepted. Its objects are left out when they come, and later leases are refused.
func TestAcquireTyped_AbsentTypeOfAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		absent := dynamicinformer.WithAllowAbsent()
		l, err := dynamicinformer.AcquireTyped[*corev1.Pod](t.Context(), f, widgets, absent)
		if err != nil {
			t.Fatal(err)
		}
		cluster.Serve(widgetType)
		create(t, cluster, widgets, "ns", "a")
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		const text = "*k8s.io/api/core/v1.Pod is not the Go type of example.com/v1 Widget"
		if now := l.Status(); now.Reason != status.ReasonDecodeFailed || now.Objects != 0 || !strings.Contains(fmt.Sprint(now.Err), text) {
			t.Errorf("status: %s, %d objects", now, now.Objects)
		}
		for _, opts := range [][]dynamicinformer.LeaseOption{nil, {absent}} {
			_, err := dynamicinformer.AcquireTyped[*corev1.Pod](t.Context(), f, widgets, opts...)
			if !errors.Is(err, dynamicinformer.ErrInvalidOption) || err.Error() != "dynamicinformer: acquire: AcquireTyped: widgets.v1.example.com: "+text {
				t.Errorf("a second lease: %v", err)
			}
		}
		shutdown(t, f)
	})
}

// syncTyped returns a synced lease on the widgets of a server, and the server.
func syncTyped(t *testing.T, initial []string, opts ...dynamicinformer.LeaseOption) (*typedServer, *dynamicinformer.TypedLease[*typedWidget]) {
	t.Helper()
	s := &typedServer{Server: stubserver.New(t), events: make(chan string), initial: initial}
	s.Prepare(s.answer)
	f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) })
	f.Start(t.Context())
	l, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets, opts...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	return s, l
}

// A decoder's error may have a value of the object, which may be a Secret.
func TestAcquireTyped_ErrorsHaveNoValues(t *testing.T) {
	for name, spec := range map[string]string{
		"of UnmarshalJSON": `{"since":"hunter2"}`, "number": `{"size":12345.678}`, "key": `{"sizes":{"hunter2":"x"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, l := syncTyped(t, []string{widgetJSON("bad", 2, spec)})
			got := l.Status()
			if got.LastFailed != "ns/bad" || got.Err == nil || strings.Contains(got.Err.Error(), "hunter2") || strings.Contains(got.Err.Error(), "12345") {
				t.Errorf("%s: %v", got.LastFailed, got.Err)
			}
		})
	}
}

// The kind Status of another group is an object, not the error of a watch.
func TestAcquireTyped_CustomResourceOfKindStatus(t *testing.T) {
	asStatus := func(widget string) string { return strings.Replace(widget, `"kind":"Widget"`, `"kind":"Status"`, 1) }
	s, l := syncTyped(t, []string{asStatus(widgetJSON("a", 2, `{"size":1}`))})
	events := &typedEvents{happened: make(chan string, 10)}
	if _, err := l.Informer().AddTypedEventHandler(events); err != nil {
		t.Fatal(err)
	}
	s.events <- stubserver.Event("MODIFIED", asStatus(widgetJSON("a", 13, `{"size":2}`)))
	for _, want := range []string{"add ns/a 1", "update ns/a 1 to ns/a 2"} {
		select {
		case got := <-events.happened:
			if got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no event, want %q", want)
		}
	}
}

// Typed handlers would panic on objects of another type.
func TestAcquireTyped_TransformToAnotherTypeFails(t *testing.T) {
	_, l := syncTyped(t, []string{widgetJSON("a", 2, `{}`), widgetJSON("b", 3, `{}`)}, dynamicinformer.WithTransform(func(obj any) (any, error) {
		if w, is := obj.(*typedWidget); is && w.Name == "a" {
			return &metav1.PartialObjectMetadata{ObjectMeta: w.ObjectMeta}, nil
		}
		return obj, nil
	}))
	if got := l.Status(); got.Reason != status.ReasonTransformFailed || got.FailedObjects != 1 || got.LastFailed != "ns/a" {
		t.Errorf("status: %+v", got)
	}
	if all, err := l.Lister().List(labels.Everything()); err != nil || len(all) != 1 {
		t.Errorf("the lister has %v, %v", all, err)
	}
}

// worded is the Go type of a widget whose fields are not those of a Namespace.
type worded struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec string `json:"spec"`
}

func (w *worded) DeepCopyObject() runtime.Object {
	c := *w
	w.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func TestAcquireTyped_NamespacesAreNotOfTheType(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		namespace := newObject("a", nil)
		namespace.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
		if _, err := cluster.Resource(namespaceType.GVR).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		l, err := dynamicinformer.AcquireTyped[*worded](t.Context(), f, widgets, dynamicinformer.WithNamespaceSelector(""))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a/x"}, keysOf(l.Lease)); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	})
}
