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

// apiOfWidgets responds as an API server that serves widgets, whose CRD is watched. It has the legacy formats of discovery.
func apiOfWidgets(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	partial := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	switch {
	case query.Get("sendInitialEvents") != "":
		stubserver.Respond(422, "application/json", stubserver.Refusal(422, "Invalid"))(w, r)
	case query.Get("watch") != "":
		stubserver.SetContentType(w, "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.URL.Path == "/api":
		stubserver.JSON(`{"kind":"APIVersions","versions":["v1"]}`)(w, r)
	case r.URL.Path == "/api/v1":
		stubserver.JSON(`{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)(w, r)
	case r.URL.Path == "/apis":
		stubserver.JSON(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`)(w, r)
	case r.URL.Path == "/apis/example.com/v1":
		stubserver.JSON(`{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["get","list","watch"]}]}`)(w, r)
	case partial:
		stubserver.JSON(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[]}`)(w, r)
	case r.URL.Path == "/apis/example.com/v1/widgets":
		stubserver.JSON(stubserver.WidgetList(widgetJSON("a", 2, `{}`)))(w, r)
	default:
		stubserver.Respond(404, "application/json", stubserver.Refusal(404, "NotFound"))(w, r)
	}
}

// marking is a transport of the program, which marks requests.
type marking struct{ http.RoundTripper }

func (m marking) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Program", "mark")
	return m.RoundTripper.RoundTrip(r)
}

// headersOf returns the headers that do not depend on the kind of a request.
func headersOf(a stubserver.Arrival) http.Header {
	header := a.Header.Clone()
	header.Del("Accept")
	header.Del("If-None-Match")
	return header
}

// The requests of lists, watches, metadata and discovery have the headers that client-go sends with the same configuration, and no other.
func TestNewForConfig_RequestsCarryOnlyTheConfig(t *testing.T) {
	for name, config := range map[string]func(cfg *rest.Config){
		"plain": func(*rest.Config) {},
		"token": func(cfg *rest.Config) { cfg.BearerToken = "token" },
		"user agent, password, impersonation and a wrapper": func(cfg *rest.Config) {
			cfg.UserAgent, cfg.Username, cfg.Password = "mine/1.0", "me", "password"
			cfg.Impersonate = rest.ImpersonationConfig{UserName: "you", UID: "1", Groups: []string{"g", "h"}, Extra: map[string][]string{"k": {"v"}}}
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return marking{next} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stubserver.New(t)
			cfg := s.RESTConfig()
			config(cfg)
			want := clientGoHeaders(t, s, cfg)
			s.Prepare(apiOfWidgets)
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
			paths := map[string]bool{}
			for _, a := range s.Arrivals() {
				paths[a.Path] = true
				if diff := cmp.Diff(want, headersOf(a)); diff != "" {
					t.Errorf("%s?%s (-client-go +gvrkit):\n%s", a.Path, a.Query, diff)
				}
			}
			for _, path := range []string{"/apis", "/apis/example.com/v1/widgets", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"} {
				if !paths[path] {
					t.Errorf("no request for %s: %v", path, paths)
				}
			}
		})
	}
}

// clientGoHeaders returns the headers of the requests of client-go's clients, which are the same for each.
func clientGoHeaders(t *testing.T, s *stubserver.Server, cfg *rest.Config) http.Header {
	t.Helper()
	s.Prepare(apiOfWidgets)
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
		if diff := cmp.Diff(headersOf(arrivals[0]), headersOf(a)); diff != "" {
			t.Fatalf("client-go's requests differ:\n%s", diff)
		}
	}
	return headersOf(arrivals[0])
}

// A server that redirects to another host does not get the credentials there. client-go sends them.
func TestNewForConfig_RedirectsTakeNoCredentials(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			other := stubserver.New(t)
			other.Prepare(apiOfWidgets)
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
			other.Prepare(apiOfWidgets)
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
