package faultproxy_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

func TestMatch_SelectsRequests(t *testing.T) {
	pods := faultproxy.Resource("", "pods")
	urls := []string{
		"/", "/readyz", "/api", "/api/", "/api/v1", "/api/v1/", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/apps.example.com/v1",
		"/api/v1/pods", "/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/a/pods/b/status", "/api/v2/pods", "/apis/apps/v1/pods",
		"/api/v1/namespaces/a/secrets/b?watch=true", "/api/v1/nodes/b?allow=x%2Cy&allow=z",
	}
	for _, tc := range []struct {
		name  string
		match faultproxy.Match
		want  []string
	}{
		{"nil", nil, urls},
		{"GVR", faultproxy.GVR("", "v1", "pods"), []string{"/api/v1/pods", "/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/a/pods/b/status"}},
		{"Resource", pods, []string{"/api/v1/pods", "/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/a/pods/b/status", "/api/v2/pods"}},
		{"Group", faultproxy.Group("apps"), []string{"/apis/apps/v1/pods"}},
		{"Group of the core", faultproxy.Group(""), []string{
			"/api/v1/pods", "/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/a/pods/b/status", "/api/v2/pods",
			"/api/v1/namespaces/a/secrets/b?watch=true", "/api/v1/nodes/b?allow=x%2Cy&allow=z",
		}},
		{"Namespace", faultproxy.Namespace("a"), []string{"/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/a/pods/b/status", "/api/v1/namespaces/a/secrets/b?watch=true"}},
		{"Name", faultproxy.Name("b"), []string{"/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/a/pods/b/status", "/api/v1/namespaces/a/secrets/b?watch=true", "/api/v1/nodes/b?allow=x%2Cy&allow=z"}},
		{"Query", faultproxy.Query("allow", "x,y"), []string{"/api/v1/nodes/b?allow=x%2Cy&allow=z"}},
		{"Query's second value", faultproxy.Query("allow", "z"), []string{"/api/v1/nodes/b?allow=x%2Cy&allow=z"}},
		{"AnyDiscovery", faultproxy.AnyDiscovery(), []string{"/api", "/api/", "/api/v1", "/api/v1/", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/apps.example.com/v1"}},
		{"Discovery", faultproxy.Discovery("apps"), []string{"/apis/apps", "/apis/apps/v1"}},
		{"Discovery of the core", faultproxy.Discovery(""), []string{"/api", "/api/", "/api/v1", "/api/v1/"}},
		{"All", faultproxy.All(pods, faultproxy.Name("b"), nil), []string{"/api/v1/namespaces/a/pods/b", "/api/v1/namespaces/a/pods/b/status"}},
		{"All of none", faultproxy.All(), urls},
		{"Any", faultproxy.Any(faultproxy.Path("/api"), faultproxy.Verb("watch")), []string{"/api", "/api/v1/namespaces/a/secrets/b?watch=true"}},
		{"Any of none", faultproxy.Any(), nil},
		{"Any with nil", faultproxy.Any(faultproxy.Path("/api"), nil), urls},
		{"Not", faultproxy.Not(faultproxy.Not(faultproxy.Path("/api"))), []string{"/api"}},
		{"Not nil", faultproxy.Not(nil), nil},
	} {
		var got []string
		for _, url := range urls {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if faultproxy.All(tc.match)(faultproxy.ParseRequest(r)) {
				got = append(got, url)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
