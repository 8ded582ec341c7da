package discovery_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

func TestNew_RefusesNil(t *testing.T) {
	for name, construct := range map[string]func() (*discovery.Resolver, error){
		"NewForConfig":                     func() (*discovery.Resolver, error) { return discovery.NewForConfig(nil) },
		"NewForConfigAndClient, no config": func() (*discovery.Resolver, error) { return discovery.NewForConfigAndClient(nil, http.DefaultClient) },
		"NewForConfigAndClient, no client": func() (*discovery.Resolver, error) { return discovery.NewForConfigAndClient(&rest.Config{}, nil) },
		"NewFromDiscovery":                 func() (*discovery.Resolver, error) { return discovery.NewFromDiscovery(nil) },
	} {
		if r, err := construct(); r != nil || err == nil {
			t.Errorf("%s(nil) = %v, %v; want an error", name, r, err)
		}
	}
}

func TestNew_RefusesAConfigThatCannotWork(t *testing.T) {
	for name, cfg := range map[string]*rest.Config{
		"host": {Host: "http://%"},
		"TLS":  {Host: "https://localhost", TLSClientConfig: rest.TLSClientConfig{Insecure: true, CAData: []byte("CA")}},
	} {
		if r, err := discovery.NewForConfig(cfg); r != nil || err == nil {
			t.Errorf("%s: NewForConfig = %v, %v; want an error", name, r, err)
		}
	}
	if r, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://%"}, http.DefaultClient); r != nil || err == nil {
		t.Errorf("NewForConfigAndClient = %v, %v; want an error", r, err)
	}
}

// counter is a transport that counts.
type counter struct {
	http.RoundTripper
	requests int
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests++
	return c.RoundTripper.RoundTrip(r)
}

// roundTripper is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNew_SendsNoRequestAndIgnoresNilOptions(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	transport := &counter{RoundTripper: s.Client().Transport}
	cfg := &rest.Config{Host: s.URL}
	own, err := discovery.NewForConfig(cfg, nil)
	if err != nil {
		t.Fatalf("NewForConfig: %v", err)
	}
	given, err := discovery.NewForConfigAndClient(cfg, &http.Client{Transport: transport}, nil, nil)
	if err != nil {
		t.Fatalf("NewForConfigAndClient: %v", err)
	}
	if got := s.paths(); got != nil {
		t.Errorf("requests of the constructors = %v, want none", got)
	}
	if diff := cmp.Diff(&rest.Config{Host: s.URL}, cfg); diff != "" {
		t.Errorf("the caller's config has changed (-want +got):\n%s", diff)
	}
	for name, r := range map[string]*discovery.Resolver{"NewForConfig": own, "NewForConfigAndClient": given} {
		if got, err := r.Validate(t.Context(), widgets); err != nil || got.GVR != widgets {
			t.Errorf("%s: Validate = %v, %v", name, got.GVR, err)
		}
	}
	if transport.requests != 1 {
		t.Errorf("requests through the given client = %d, want 1", transport.requests)
	}
}

// client-go's fakes have no contexts.
func TestNewFromDiscovery_TakesClientGosFake(t *testing.T) {
	fake := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "example.com/v1",
		APIResources: []metav1.APIResource{{Name: "widgets", Kind: "Widget", Verbs: all}},
	}}}}
	r, err := discovery.NewFromDiscovery(fake, nil)
	if err != nil {
		t.Fatalf("NewFromDiscovery: %v", err)
	}
	if got, err := r.Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
		t.Errorf("Resolve = %v, %v", got.GVR, err)
	}
	if got, err := r.Validate(t.Context(), widgets); err != nil || got.GVR != widgets {
		t.Errorf("Validate = %v, %v", got.GVR, err)
	}
	_, err = r.Validate(t.Context(), gizmos)
	checkKind(t, err, discovery.ErrNotServed)
}

// client-go's client makes an empty list of a 404 for /api or /api/v1, and another client may have no list. That is no evidence that a type is absent.
func TestNewFromDiscovery_AServerWithoutDocumentsIsInconclusive(t *testing.T) {
	s := stubserver.New(t)
	s.Prepare(func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
	client, err := clientdiscovery.NewDiscoveryClientForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for name, construct := range map[string]func() (*discovery.Resolver, error){
		"NewForConfig":     func() (*discovery.Resolver, error) { return discovery.NewForConfig(s.RESTConfig()) },
		"NewFromDiscovery": func() (*discovery.Resolver, error) { return discovery.NewFromDiscovery(client) },
		"NewFromDiscovery, a fake": func() (*discovery.Resolver, error) {
			return discovery.NewFromDiscovery(&fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}})
		},
	} {
		r, err := construct()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Resolve(t.Context(), "pods"); !errors.Is(err, discovery.ErrInconclusive) {
			t.Errorf("%s: Resolve = %v, %v", name, got, err)
		}
		for _, gvr := range []schema.GroupVersionResource{{Version: "v1", Resource: "pods"}, widgets} {
			if got, err := r.Validate(t.Context(), gvr); !errors.Is(err, discovery.ErrInconclusive) {
				t.Errorf("%s: Validate(%s) = %v, %v", name, gvr, got, err)
			}
		}
	}
}

// Neither a question nor a running resolver follows a redirect to another server, which would get the token.
func TestNewForConfig_RedirectsTakeNoCredentials(t *testing.T) {
	other, s := newServer(t, aggregated), newServer(t, aggregated)
	s.answer("*", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
	r := s.resolver(t)
	runFor(t, r)
	eventually(t, "all sources have failed", func() bool {
		status := r.Status()
		return status.CRDs.Err != nil && status.APIServices.Err != nil && status.Documents.Err != nil
	})
	if _, err := r.ResolveGVR(t.Context(), gadgets); err == nil || !strings.Contains(err.Error(), "redirects the request to "+other.URL) {
		t.Errorf("ResolveGVR: %v", err)
	}
	if paths := other.paths(); len(paths) > 0 {
		t.Errorf("requests have followed the redirect: %q", paths)
	}
}

// A redirect on the same server is followed by each request, as in client-go.
func TestNewForConfig_RedirectsOnTheSameServerAreFollowed(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	s.collections(t, newCollection(), newCollection())
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/moved/") {
			http.Redirect(w, r, "/moved"+r.URL.RequestURI(), http.StatusTemporaryRedirect)
			return
		}
		http.StripPrefix("/moved", s).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	r, err := discovery.NewForConfig(&rest.Config{Host: front.URL})
	if err != nil {
		t.Fatal(err)
	}
	runFor(t, r)
	eventually(t, "all sources are settled", func() bool {
		now := r.Status()
		return now.Documents.State == discovery.SourceCurrent && (now.CRDs.State == discovery.SourceCurrent || now.CRDs.Err != nil) &&
			(now.APIServices.State == discovery.SourceCurrent || now.APIServices.Err != nil)
	})
	if now := r.Status(); now.CRDs.Err != nil || now.APIServices.Err != nil {
		t.Errorf("CRDs: %v, APIServices: %v", now.CRDs.Err, now.APIServices.Err)
	}
}

// Requests have the addresses of those of client-go's discovery client.
func TestNewForConfig_TakesTheHostAsClientGo(t *testing.T) {
	var mu sync.Mutex
	arrived := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		arrived[strings.TrimSuffix(r.RequestURI, "?timeout=32s")] = true // client-go's default
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	seen := func() []string {
		mu.Lock()
		defer mu.Unlock()
		uris := slices.Sorted(maps.Keys(arrived))
		clear(arrived)
		return uris
	}
	for _, below := range []string{"", "/", "/k8s/c-1", "/k8s/c-1/", "/k8s//c-1//", "/k8s/./x/../c-1", "/k8s%2Fc-1/", "/k 8s/%c3%a9", "?token=x", "/k8s?token=x#part", "#part"} {
		cfg := &rest.Config{Host: s.URL + below}
		client, err := clientdiscovery.NewDiscoveryClientForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/api", "/apis"} {
			client.RESTClient().Get().AbsPath(path).Do(t.Context())
		}
		want := seen()
		r, err := discovery.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.ResolveAll(t.Context(), discovery.Selector{}); err == nil {
			t.Error("a server without documents has answered")
		}
		if diff := cmp.Diff(want, seen()); diff != "" {
			t.Errorf("%q (-client-go +gvrkit):\n%s", below, diff)
		}
	}
}

// An http.Client accepts a response without a body, as transports of tests return it.
func TestNewForConfig_AResponseMayHaveNoBody(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusFound, http.StatusNotFound, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			r, err := discovery.NewForConfig(&rest.Config{Host: "http://server", Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: code, Header: http.Header{}, Request: req}, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			runFor(t, r)
			sleep(time.Second)
			if now := r.Status(); now.Documents.Err == nil || now.CRDs.Err == nil {
				t.Errorf("%d: documents: %v, CRDs: %v", code, now.Documents.Err, now.CRDs.Err)
			}
		})
	}
}

// The requests of questions and of a running resolver have the headers that those of client-go's discovery client have with the same
// configuration, and no other, apart from Accept and If-None-Match.
func TestNewForConfig_RequestsCarryOnlyTheConfig(t *testing.T) {
	for name, config := range stubserver.Credentials {
		t.Run(name, func(t *testing.T) {
			s := stubserver.New(t)
			cfg := s.RESTConfig()
			config(cfg)
			s.Prepare(stubserver.ServeWidgets)
			client, err := clientdiscovery.NewDiscoveryClientForConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.ServerGroups(); err != nil {
				t.Fatal(err)
			}
			want := s.Arrivals()[0].Carried()
			s.Prepare(stubserver.ServeWidgets)
			r, err := discovery.NewForConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Validate(t.Context(), widgets); err != nil {
				t.Error(err)
			}
			runFor(t, r)
			eventually(t, "documents and CRDs are known", func() bool {
				status := r.Status()
				return status.Documents.State == discovery.SourceCurrent && status.CRDs.State == discovery.SourceCurrent
			})
			s.CheckCarried(t, want, "/apis", "/apis/example.com/v1", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
		})
	}
}
