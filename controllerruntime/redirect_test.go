package controllerruntime_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/gvrkit/gvrkit/controllerruntime"
)

// A server that redirects to another host does not get the credentials there: neither from the mapper of the options, nor from the
// informers of a factory, nor from those of NewInformer.
func TestNew_RedirectsTakeNoCredentials(t *testing.T) {
	var mu sync.Mutex
	var arrived []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		arrived = append(arrived, r.URL.Path+" "+r.Header.Get("Authorization"))
		http.NotFound(w, r)
	}))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	requests := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path
		http.Redirect(w, r, elsewhere+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gvk.GroupVersion()})
	mapper.Add(gvk, meta.RESTScopeNamespace)

	awaited := map[string]int{"factory": 1, "NewInformer": 2} // before the second request, the first one has followed the redirect
	for name, opts := range map[string]cache.Options{
		"mapper":      {},
		"factory":     {Mapper: mapper},
		"NewInformer": {Mapper: mapper, NewInformer: toolscache.NewSharedIndexInformer},
	} {
		t.Run(name, func(t *testing.T) {
			for len(requests) > 0 {
				<-requests
			}
			c, err := controllerruntime.New(&rest.Config{Host: server.URL, BearerToken: "secret"}, opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- c.Start(ctx) }()
			widget := &unstructured.Unstructured{}
			widget.SetGroupVersionKind(gvk)
			get, done := context.WithTimeout(ctx, 30*time.Second)
			defer done()
			var asking sync.WaitGroup
			var refused error
			asking.Go(func() { _, refused = c.GetInformer(get, widget) })
			for range awaited[name] {
				select {
				case <-requests:
				case <-get.Done():
					t.Error("no request")
				}
			}
			if name != "mapper" {
				done()
			}
			asking.Wait()
			if name == "mapper" && (refused == nil || !strings.Contains(refused.Error(), "redirects the request to http://localhost:")) {
				t.Errorf("GetInformer: %v", refused)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(arrived) > 0 {
				t.Errorf("the other host got %q", arrived)
				arrived = nil
			}
		})
	}
}
