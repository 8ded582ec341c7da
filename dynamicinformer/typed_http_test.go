package dynamicinformer_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/listers"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// acquireFrom returns a lease on objects of a server that responds to lists with list, and to watches with watch.
func acquireFrom[T dynamicinformer.Object](t *testing.T, s *stubserver.Server, gvr schema.GroupVersionResource, list, watch stubserver.Reply) *dynamicinformer.TypedLease[T] {
	t.Helper()
	s.Prepare(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if !query.Has("allowWatchBookmarks") {
			list(w, r)
			return
		}
		if query.Get("watch") == "" {
			t.Error("a request for a watch is a list")
		}
		watch(w, r)
	})
	f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil),
		dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever), dynamicinformer.WithNamespace("ns"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) })
	f.Start(t.Context())
	l, err := dynamicinformer.AcquireTyped[T](t.Context(), f, gvr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The items of a list of a built-in type have no kind.
func TestAcquireTyped_BuiltInTypeInANamespace(t *testing.T) {
	s, pods := stubserver.New(t), corev1.SchemeGroupVersion.WithResource("pods")
	watches := make(chan *url.URL, 10)
	l := acquireFrom[*corev1.Pod](t, s, pods,
		stubserver.JSON(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"p","namespace":"ns","resourceVersion":"3"}}]}`),
		func(w http.ResponseWriter, r *http.Request) {
			watches <- r.URL
			stubserver.Hang("\n")(w, r)
		})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	if pod, err := listers.NewNamespaced(l.Lister(), "ns").Get("p"); err != nil || pod.Kind != "Pod" || pod.APIVersion != "v1" {
		t.Errorf("the object is %+v, %v", pod, err)
	}
	select {
	case got := <-watches:
		if version := got.Query().Get("resourceVersion"); version != "9" {
			t.Errorf("the watch begins at version %q, want that of the list", version)
		}
	case <-ctx.Done():
		t.Fatal("there is no watch")
	}
	for _, got := range s.Arrivals() {
		if got.Path != "/api/v1/namespaces/ns/pods" {
			t.Errorf("request for %s", got.Path)
		}
	}
}

func TestAcquireTyped_ResponseThatIsNoList(t *testing.T) {
	for body, message := range map[string]string{
		widgetJSON("a", 2, `{}`): "the server sent a Widget",
		`{}`:                     "the server sent an object without a kind, and without items or a resourceVersion",
		`{"items":[{}]}`:         "the server sent an object without a kind, and without items or a resourceVersion",
	} {
		t.Run(body, func(t *testing.T) {
			l := acquireFrom[*typedWidget](t, stubserver.New(t), widgets, stubserver.JSON(body), stubserver.Hang("\n"))
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for got := range l.Watch(ctx) {
				if got.Listed {
					t.Fatal("it is a list")
				}
				if got.Err == nil {
					continue
				}
				if !strings.Contains(got.Err.Error(), message) {
					t.Errorf("error %v, want one with %q", got.Err, message)
				}
				return
			}
			t.Error("no error")
		})
	}
}

// The rest of a list in pages may be no list, too. The objects of the first page are not the whole list.
func TestAcquireTyped_PageThatIsNoList(t *testing.T) {
	l := acquireFrom[*typedWidget](t, stubserver.New(t), widgets, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") != "" {
			stubserver.JSON(`{}`)(w, r)
			return
		}
		stubserver.JSON(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9","continue":"c"},"items":[`+widgetJSON("a", 2, `{}`)+`]}`)(w, r)
	}, stubserver.Hang("\n"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for got := range l.Watch(ctx) {
		if got.Listed {
			t.Fatal("it is listed with the first page")
		}
		if got.Err != nil {
			return
		}
	}
	t.Error("no error")
}

// Otherwise the next watch would begin with the same event.
func TestAcquireTyped_ABadObjectHasAVersion(t *testing.T) {
	versions := make(chan string, 10)
	var watches atomic.Int32
	acquireFrom[*typedWidget](t, stubserver.New(t), widgets, stubserver.JSON(stubserver.WidgetList()), func(w http.ResponseWriter, r *http.Request) {
		versions <- r.URL.Query().Get("resourceVersion")
		if watches.Add(1) == 1 {
			stubserver.Stream(stubserver.Event("ADDED", widgetJSON("bad", 14, `[]`)))(w, r)
			return
		}
		stubserver.Hang("\n")(w, r)
	})
	for _, want := range []string{"9", "14"} {
		select {
		case got := <-versions:
			if got != want {
				t.Errorf("a watch begins at version %s, want %s", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("there is no watch")
		}
	}
}

// A response that breaks off is not one that can't be decoded.
func TestStatus_ListBreaksOff(t *testing.T) {
	for name, opts := range map[string][]dynamicinformer.LeaseOption{"objects": nil, "metadata": {dynamicinformer.WithMetadataOnly()}} {
		t.Run(name, func(t *testing.T) {
			s := stubserver.New(t)
			s.Prepare(stubserver.Break(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[{`))
			f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil), dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) })
			f.Start(t.Context())
			got := awaitStatus(t, acquire(t, f, widgets, opts...), "it fails", func(i status.Informer) bool { return i.Reason != status.ReasonSyncing && i.Reason != "" })
			if text := got.String(); got.Reason != status.ReasonUnavailable || !strings.HasSuffix(text, "check that the API server is reachable and healthy") {
				t.Error(text)
			}
		})
	}
}
