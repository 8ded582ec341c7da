package dynamicclient_test

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// wrapped is a transport that adds to each request.
type wrapped struct {
	http.RoundTripper
	header, value string
}

func (w wrapped) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Add(w.header, w.value)
	return w.RoundTripper.RoundTrip(r)
}

// adding returns a wrapper that adds a header.
func adding(header, value string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return wrapped{next, header, value} }
}

func TestClient_TakesTheConfigAsClientGo(t *testing.T) {
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	s := serve(t)
	for _, tc := range []struct {
		name   string
		config func(cfg *rest.Config)
	}{
		{"as it is", func(*rest.Config) {}},
		{"user agent", func(cfg *rest.Config) { cfg.UserAgent = "mine/1.0" }},
		{"bearer token", func(cfg *rest.Config) { cfg.BearerToken = "secret" }},
		{"password", func(cfg *rest.Config) { cfg.Username, cfg.Password = "me", "secret" }},
		{"impersonation", func(cfg *rest.Config) {
			cfg.Impersonate = rest.ImpersonationConfig{UserName: "you", Groups: []string{"g", "h"}, UID: "1", Extra: map[string][]string{"k": {"v"}}}
		}},
		{"path before the API", func(cfg *rest.Config) { cfg.Host += "/k8s/clusters/c-1/" }},
		{"content types, which are a dynamic client's own", func(cfg *rest.Config) {
			cfg.ContentType, cfg.AcceptContentTypes = "application/yaml", "application/vnd.kubernetes.protobuf"
		}},
		{"API path, which is not used", func(cfg *rest.Config) { cfg.APIPath = "/other" }},
		{"one wrapper", func(cfg *rest.Config) { cfg.WrapTransport = adding("X-Wrapped", "once") }},
		{"two wrappers", func(cfg *rest.Config) {
			cfg.Wrap(adding("X-Wrapped", "inner"))
			cfg.Wrap(adding("X-Wrapped", "outer"))
		}},
		{"a wrapper that asks for tables", func(cfg *rest.Config) { cfg.Wrap(adding("Accept", table)) }},
		{"a transport", func(cfg *rest.Config) { cfg.Transport = wrapped{http.DefaultTransport, "X-Transport", "own"} }},
		{"no compression", func(cfg *rest.Config) { cfg.DisableCompression = true }},
		{"a time limit", func(cfg *rest.Config) { cfg.Timeout = time.Minute }},
	} {
		t.Run(tc.name, func(t *testing.T) { s.checkCalls(t, tc.config) })
	}
}

// checkCalls checks a call of each kind with the config.
func (s *apiServer) checkCalls(t *testing.T, config func(cfg *rest.Config)) {
	t.Helper()
	for _, c := range calls {
		row := exchange{config: config, replies: []stubserver.Reply{stubserver.JSON(stubserver.WidgetList(widgetA))}, call: c.call}
		if c.name == "watch" {
			row.replies = []stubserver.Reply{stubserver.Stream(stubserver.Event("ADDED", widgetA))}
		}
		s.check(t, row)
	}
}

func TestClient_TakesAnHTTPClientAsClientGo(t *testing.T) {
	s := serve(t)
	for name, httpClient := range map[string]*http.Client{
		"with a transport": {Transport: wrapped{http.DefaultTransport, "X-Transport", "the client's"}},
		"nil":              nil,
	} {
		for _, c := range calls {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				row := exchange{replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: c.call, config: func(cfg *rest.Config) {
					cfg.BearerToken = "not used"
					cfg.Wrap(adding("X-Wrapped", "not used"))
				}}
				want := s.outcome(t, row, func(cfg *rest.Config) (dynamic.Interface, error) {
					return dynamic.NewForConfigAndClient(cfg, httpClient)
				})
				got := s.outcome(t, row, func(cfg *rest.Config) (dynamic.Interface, error) {
					return dynamicclient.NewForHTTPClient(cfg, httpClient)
				})
				if diff := cmp.Diff(want, got); diff != "" || len(got.Arrivals) != 1 {
					t.Errorf("%d requests (-client-go +ours):\n%s", len(got.Arrivals), diff)
				}
			})
		}
	}
}

func TestClient_SpeaksHTTP2AsClientGo(t *testing.T) {
	s := serveTLS(t)
	all := metav1.ListOptions{}
	alone := func(cfg *rest.Config) { cfg.Dial = (&net.Dialer{}).DialContext } // a connection of its own: errors have the stream's number
	s.checkCalls(t, nil)
	s.checkAll(t, []exchange{
		{name: "a busy watch", replies: []stubserver.Reply{stubserver.Stream(manyEvents(500))}, call: watchToEnd(all)},
		{name: "a watch breaks", config: alone, replies: []stubserver.Reply{stubserver.Break(stubserver.Event("ADDED", widgetA))}, call: watchToEnd(all)},
		{name: "a watch breaks in an event", config: alone, replies: []stubserver.Reply{stubserver.Break(`{"type":`)}, call: watchToEnd(all)},
		{name: "a get breaks", config: alone, replies: []stubserver.Reply{stubserver.Break(`{"kind"`)}, call: get(), fails: "stream error when reading response body"},
	})
	row := exchange{replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: get()}
	if got := s.outcome(t, row, made()).Arrivals[0].Proto; got != "HTTP/2.0" {
		t.Errorf("protocol = %s", got)
	}
}

func TestClient_UnzipsAsClientGo(t *testing.T) {
	added := stubserver.Event("ADDED", widgetA)
	s := serveTLS(t)
	for name, config := range map[string]func(cfg *rest.Config){
		"by default": nil,
		"told not to ask for it": func(cfg *rest.Config) {
			cfg.DisableCompression = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.checkAll(t, []exchange{
				{name: "get", config: config, replies: []stubserver.Reply{stubserver.Gzip(0, widgetA)}, call: get()},
				{name: "list", config: config, replies: []stubserver.Reply{stubserver.Gzip(0, stubserver.WidgetList(widgetA, widgetB))}, call: list(metav1.ListOptions{})},
				{name: "watch", config: config, replies: []stubserver.Reply{stubserver.Gzip(0, added, added, stubserver.Event("DELETED", widgetB))}, call: watchToEnd(metav1.ListOptions{})},
			})
		})
	}
	row := exchange{replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: get()}
	if got := s.outcome(t, row, made()).Arrivals[0].Header.Get("Accept-Encoding"); got != "gzip" {
		t.Errorf("Accept-Encoding = %q", got)
	}
}

func TestClient_LeavesTheConfigAlone(t *testing.T) {
	cfg := &rest.Config{Host: "http://127.0.0.1:1", QPS: 3, Burst: 4}
	before := cfg.String()
	if _, err := dynamicclient.New(cfg); err != nil {
		t.Fatal(err)
	}
	if after := cfg.String(); after != before || cfg.NegotiatedSerializer != nil || cfg.RateLimiter != nil {
		t.Errorf("before: %s\nafter: %s", before, after)
	}
}
