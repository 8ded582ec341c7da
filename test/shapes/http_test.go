package shapes_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// httpClient returns client-go's client of a server with these replies.
func httpClient(t *testing.T, list, watch stubserver.Reply) (dynamic.Interface, *stubserver.Server) {
	t.Helper()
	s := stubserver.New(t)
	s.Prepare(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			stubserver.Respond(422, "application/json", stubserver.Refusal(422, "Invalid"))(w, r)
		case query.Get("watch") != "":
			watch(w, r)
		default:
			list(w, r)
		}
	})
	client, err := dynamic.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client, s
}

const listedWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"ns","name":"a","resourceVersion":"5"},"spec":{"size":9007199254740993,"ratio":1.0,"share":0.5}}`

// A watch error handler sees the server's status, and may end its own informer, while the requests are retried.
func TestHTTP_WatchErrorHandlerCancels(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			notFound := stubserver.Respond(404, "application/json", stubserver.Refusal(404, "NotFound"))
			client, _ := httpClient(t, notFound, notFound)
			l.setenv(t)
			f := l.newFactory(client, 0)
			informer := f.ForResource(widgets).Informer()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var notFounds atomic.Int32
			if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
				if apierrors.IsNotFound(err) && notFounds.Add(1) == 1 {
					cancel()
				}
			}); err != nil {
				t.Fatal(err)
			}
			f.Start(ctx.Done())
			if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				t.Error("it has synced")
			}
			f.Shutdown()
			if got := notFounds.Load(); got != 1 || !informer.IsStopped() {
				t.Errorf("%d errors, stopped %v", got, informer.IsStopped())
			}
		})
	}
}

// Numbers have the types of client-go's decoder, and the end of the informer ends its request.
func TestHTTP_ObjectsAndTheEndOfTheWatch(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			opened, closed := make(chan struct{}), make(chan struct{})
			client, _ := httpClient(t, stubserver.JSON(stubserver.WidgetList(listedWidget)), func(w http.ResponseWriter, r *http.Request) {
				defer close(closed)
				stubserver.SetContentType(w, "application/json")
				w.(http.Flusher).Flush()
				close(opened)
				<-r.Context().Done()
			})
			l.setenv(t)
			stop := make(chan struct{})
			f := l.newFactory(client, 0)
			generic := f.ForResource(widgets)
			f.Start(stop)
			if !f.WaitForCacheSync(stop)[widgets] {
				t.Fatal("not synced")
			}
			obj, err := generic.Lister().ByNamespace("ns").Get("a")
			if err != nil {
				t.Fatal(err)
			}
			content := obj.(*unstructured.Unstructured).Object
			size, _, sizeErr := unstructured.NestedInt64(content, "spec", "size")
			ratio, _, ratioErr := unstructured.NestedFloat64(content, "spec", "ratio")
			share, _, shareErr := unstructured.NestedFloat64(content, "spec", "share")
			if size != 1<<53+1 || ratio != 1 || share != 0.5 || sizeErr != nil || ratioErr != nil || shareErr != nil {
				t.Errorf("%v %v %v: %v %v %v", size, ratio, share, sizeErr, ratioErr, shareErr)
			}
			<-opened
			close(stop)
			f.Shutdown()
			<-closed
		})
	}
}

// The requests of an informer are those of client-go: path and query, except the timeouts, which are random. The first list
// is consistent, which docs/migration.md has as a difference.
func TestHTTP_RequestsAreThoseOfClientGo(t *testing.T) {
	got := map[string]string{}
	for _, l := range libraries[:2] {
		opened := make(chan struct{})
		client, s := httpClient(t, stubserver.JSON(stubserver.WidgetList(listedWidget)), func(w http.ResponseWriter, r *http.Request) {
			stubserver.SetContentType(w, "application/json")
			w.(http.Flusher).Flush()
			close(opened)
			<-r.Context().Done()
		})
		stop := make(chan struct{})
		f := l.newFiltered(client, 0, "ns", nil)
		f.ForResource(widgets)
		f.Start(stop)
		<-opened
		close(stop)
		f.Shutdown()
		var lines []string
		for _, a := range s.Arrivals() {
			query := ""
			for part := range strings.SplitSeq(a.Query, "&") {
				if !strings.HasPrefix(part, "timeoutSeconds=") {
					query += " " + part
				}
			}
			lines = append(lines, a.Method+" "+a.Path+query)
		}
		got[l.name] = strings.Join(lines, "\n")
	}
	if diff := cmp.Diff(strings.Replace(got[clientGo], " resourceVersion=0", "", 1), got["gvrkit"]); diff != "" || strings.Count(got["gvrkit"], "\n") != 2 {
		t.Errorf("(-client-go +gvrkit):\n%s", diff)
	}
}
