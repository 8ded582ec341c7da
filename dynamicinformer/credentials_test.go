package dynamicinformer_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// The requests of lists, watches, metadata and discovery have the headers that client-go sends with the same configuration, and no
// other, apart from Accept and If-None-Match.
func TestNewForConfig_RequestsCarryOnlyTheConfig(t *testing.T) {
	for name, config := range stubserver.Credentials {
		t.Run(name, func(t *testing.T) {
			s := stubserver.New(t)
			cfg := s.RESTConfig()
			config(cfg)
			want := clientGoHeaders(t, s, cfg)
			s.Prepare(stubserver.ServeWidgets)
			f, err := dynamicinformer.NewForConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			f.Start(ctx)
			acquire(t, f, widgets)
			acquire(t, f, widgets, dynamicinformer.WithMetadataOnly())
			acquire(t, f, widgets, dynamicinformer.WithPackedCache(), dynamicinformer.WithSeparateInformer())
			if _, err := dynamicinformer.AcquireTyped[*typedWidget](ctx, f, widgets); err != nil {
				t.Error(err)
			}
			if err := f.WaitForSync(ctx); err != nil {
				t.Error(err)
			}
			if _, err := f.Resolver().ResolveAll(ctx, discovery.Selector{}); err != nil {
				t.Error(err)
			}
			shutdown(t, f)
			s.CheckCarried(t, want, "/apis", "/apis/example.com/v1/widgets", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
		})
	}
}

// clientGoHeaders returns the headers of the requests of client-go's clients, which are the same for each.
func clientGoHeaders(t *testing.T, s *stubserver.Server, cfg *rest.Config) http.Header {
	t.Helper()
	s.Prepare(stubserver.ServeWidgets)
	dynamicClient, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	metadataClient, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	discoveryClient, err := clientdiscovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dynamicClient.Resource(widgets).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := metadataClient.Resource(widgets).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := discoveryClient.ServerGroups(); err != nil {
		t.Fatal(err)
	}
	arrivals := s.Arrivals()
	for _, a := range arrivals {
		if diff := cmp.Diff(arrivals[0].Carried(), a.Carried()); diff != "" {
			t.Fatalf("client-go's requests differ:\n%s", diff)
		}
	}
	return arrivals[0].Carried()
}

// A server that redirects to another host does not get the credentials there. client-go sends them.
func TestNewForConfig_RedirectsTakeNoCredentials(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			other := stubserver.New(t)
			other.Prepare(stubserver.ServeWidgets)
			elsewhere, err := url.Parse(other.URL)
			if err != nil {
				t.Fatal(err)
			}
			elsewhere.Host = "localhost:" + elsewhere.Port()
			s := stubserver.New(t)
			s.Prepare(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.String()+r.URL.RequestURI(), code)
			})
			cfg := s.RESTConfig()
			cfg.BearerToken = secret
			cfg.Impersonate.UserName = "you"
			if client, err := dynamic.NewForConfig(cfg); err != nil {
				t.Fatal(err)
			} else if _, err = client.Resource(widgets).List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := other.Arrivals()[0].Header.Get("Authorization"); got == "" {
				t.Error("client-go no longer sends the token to the other host: then this difference has ended")
			}
			other.Prepare(stubserver.ServeWidgets)
			for _, opts := range [][]dynamicinformer.Option{nil, {dynamicinformer.WithDiscovery(nil)}} {
				f, err := dynamicinformer.NewForConfig(cfg, opts...)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				f.Start(ctx)
				f.ForResource(widgets)
				for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && (err == nil || !strings.Contains(err.Error(), "redirects")); {
					short, done := context.WithTimeout(ctx, 200*time.Millisecond)
					err = f.WaitForSync(short, dynamicinformer.WithResources(widgets))
					done()
				}
				if err == nil || !strings.Contains(err.Error(), "the server redirects the request to http://localhost:") {
					t.Errorf("WaitForSync: %v", err)
				}
				if _, err := f.Client().Resource(widgets).List(t.Context(), metav1.ListOptions{}); err == nil {
					t.Error("the factory's client follows the redirect")
				}
				shutdown(t, f)
				cancel()
			}
			for _, a := range other.Arrivals() {
				t.Errorf("a request has followed the redirect: %s %v", a.Path, a.Header)
			}
		})
	}
}
