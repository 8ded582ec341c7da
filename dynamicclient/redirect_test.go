package dynamicclient_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

func TestNew_RedirectsTakeNoCredentials(t *testing.T) {
	other, s := stubserver.New(t), stubserver.New(t)
	other.Prepare(stubserver.ServeWidgets)
	s.Prepare(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
	cfg := s.RESTConfig()
	cfg.BearerToken = "secret"
	client, err := dynamicclient.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(widgets).List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "redirects the request to "+other.URL) {
		t.Errorf("List: %v", err)
	}
	if _, err := client.Resource(widgets).Watch(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a watch has followed the redirect")
	}
	for _, a := range other.Arrivals() {
		t.Errorf("a request has followed the redirect: %s %v", a.Path, a.Header)
	}
}
