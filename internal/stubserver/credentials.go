package stubserver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// Credentials are configurations with different headers.
var Credentials = map[string]func(cfg *rest.Config){
	"plain": func(*rest.Config) {},
	"token": func(cfg *rest.Config) { cfg.BearerToken = "token" },
	"user agent, password, impersonation and a wrapper": func(cfg *rest.Config) {
		cfg.UserAgent, cfg.Username, cfg.Password = "mine/1.0", "me", "password"
		cfg.Impersonate = rest.ImpersonationConfig{UserName: "you", UID: "1", Groups: []string{"g", "h"}, Extra: map[string][]string{"k": {"v"}}}
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return marking{next} })
	},
}

// marking is a transport of the program, which marks requests.
type marking struct{ http.RoundTripper }

func (m marking) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Program", "mark")
	return m.RoundTripper.RoundTrip(r)
}

// Carried returns the headers that do not depend on the kind of a request.
func (a Arrival) Carried() http.Header {
	header := a.Header.Clone()
	header.Del("Accept")
	header.Del("If-None-Match")
	return header
}

// CheckCarried checks that all requests since Prepare carried want, and that each of paths had one.
func (s *Server) CheckCarried(t *testing.T, want http.Header, paths ...string) {
	t.Helper()
	seen := map[string]bool{}
	for _, a := range s.Arrivals() {
		seen[a.Path] = true
		if diff := cmp.Diff(want, a.Carried()); diff != "" {
			t.Errorf("%s?%s (-client-go +gvrkit):\n%s", a.Path, a.Query, diff)
		}
	}
	for _, path := range paths {
		if !seen[path] {
			t.Errorf("no request for %s: %v", path, seen)
		}
	}
}

// ServeWidgets responds as an API server that serves widgets, whose CRD is watched. It has the legacy formats of discovery.
func ServeWidgets(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	partial := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	switch {
	case query.Get("sendInitialEvents") != "":
		Respond(422, "application/json", Refusal(422, "Invalid"))(w, r)
	case query.Get("watch") != "":
		SetContentType(w, "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.URL.Path == "/api":
		JSON(`{"kind":"APIVersions","versions":["v1"]}`)(w, r)
	case r.URL.Path == "/api/v1":
		JSON(`{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)(w, r)
	case r.URL.Path == "/apis":
		JSON(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`)(w, r)
	case r.URL.Path == "/apis/example.com/v1":
		JSON(`{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["get","list","watch"]}]}`)(w, r)
	case partial:
		JSON(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[]}`)(w, r)
	case r.URL.Path == "/apis/example.com/v1/widgets":
		JSON(WidgetList(SimilarWidget(1)))(w, r)
	default:
		Respond(404, "application/json", Refusal(404, "NotFound"))(w, r)
	}
}
