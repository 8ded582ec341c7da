package dynamicinformer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// The audit log of a server shows the user agent, as for client-go.
func TestNewForConfig_SetsTheUserAgent(t *testing.T) {
	for agent, want := range map[string]string{"": rest.DefaultKubernetesUserAgent(), "mine/1.0": "mine/1.0"} {
		s := stubserver.New(t)
		cfg := s.RESTConfig()
		cfg.UserAgent = agent
		f, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithDiscovery(nil))
		if err != nil {
			t.Fatal(err)
		}
		arrived := make(chan string, 100)
		s.Prepare(func(w http.ResponseWriter, r *http.Request) {
			select {
			case arrived <- r.UserAgent():
			default:
			}
			http.NotFound(w, r)
		})
		f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
		f.Start(t.Context())
		if got := <-arrived; got != want {
			t.Errorf("user agent %q, want %q", got, want)
		}
		if err := f.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNewForConfigAndClient_UsesTheClient(t *testing.T) {
	s := stubserver.New(t)
	arrived := make(chan string, 100)
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		select {
		case arrived <- r.URL.Path:
		default:
		}
		return s.Client().Transport.RoundTrip(r)
	})}
	f, err := dynamicinformer.NewForConfigAndClient(s.RESTConfig(), client)
	if err != nil {
		t.Fatal(err)
	}
	f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	f.Start(t.Context())
	<-arrived // a request of discovery
	if err := f.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// The informers of a factory, in each form, use the configuration as it was when the factory was created.
func TestNewForConfigAndClient_LaterChangesOfTheConfigHaveNoEffect(t *testing.T) {
	s, other := stubserver.New(t), stubserver.New(t)
	s.Prepare(stubserver.ServeWidgets)
	other.Prepare(stubserver.ServeWidgets)
	cfg := s.RESTConfig()
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f, err := dynamicinformer.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Host = other.URL
	f.Start(t.Context())
	acquire(t, f, widgets)
	acquire(t, f, widgets, dynamicinformer.WithMetadataOnly())
	acquire(t, f, widgets, dynamicinformer.WithGoType(&typedWidget{}))
	acquire(t, f, widgets, dynamicinformer.WithPackedCache(), dynamicinformer.WithSeparateInformer())
	if err := f.WaitForSync(t.Context()); err != nil {
		t.Error(err)
	}
	shutdown(t, f)
	for _, a := range other.Arrivals() {
		t.Errorf("a request to the later host: %s?%s", a.Path, a.Query)
	}
}

// A factory rejects each rest.Config that client-go rejects, with the same text.
func TestNewForConfig_RejectsConfigsThatClientGoRejects(t *testing.T) {
	for name, cfg := range map[string]*rest.Config{
		"an invalid CA":      {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}},
		"an invalid host":    {Host: "http://[::1"},
		"a CA with Insecure": {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{Insecure: true, CAData: []byte("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			_, want := dynamic.NewForConfig(cfg)
			_, err := dynamicinformer.NewForConfig(cfg)
			if text := fmt.Sprint(err); want == nil || !strings.HasPrefix(text, "dynamicinformer: ") || !strings.HasSuffix(text, want.Error()) {
				t.Errorf("error is %q, client-go's is %v", text, want)
			}
		})
	}
	if factory, err := dynamicinformer.NewForConfigAndClient(&rest.Config{}, nil); err == nil || factory != nil {
		t.Errorf("without an HTTP client, factory is %v, error %v", factory, err)
	}
	if factory, err := dynamicinformer.NewForConfig(nil); fmt.Sprint(err) != "dynamicinformer: the rest.Config is nil" || factory != nil {
		t.Errorf("factory is %v, error %v", factory, err)
	}
}
