package dynamicclient_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

func TestNew_RedirectsTakeNoCredentials(t *testing.T) {
	for name, create := range map[string]func(*rest.Config) (dynamic.Interface, error){
		"New": func(cfg *rest.Config) (dynamic.Interface, error) { return dynamicclient.New(cfg) },
		"NewForHTTPClient": func(cfg *rest.Config) (dynamic.Interface, error) {
			httpClient, err := rest.HTTPClientFor(cfg)
			if err != nil {
				return nil, err
			}
			return dynamicclient.NewForHTTPClient(cfg, httpClient)
		},
	} {
		t.Run(name, func(t *testing.T) {
			other, s := stubserver.New(t), stubserver.New(t)
			other.Prepare(stubserver.ServeWidgets)
			s.Prepare(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect)
			})
			cfg := s.RESTConfig()
			cfg.BearerToken = "secret"
			client, err := create(cfg)
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
		})
	}
}

// The transport settings of a configuration, such as the token, have no effect.
func TestNewForHTTPClient_NilIsTheDefaultClient(t *testing.T) {
	s := stubserver.New(t)
	s.Prepare(stubserver.ServeWidgets)
	cfg := s.RESTConfig()
	cfg.BearerToken = "secret"
	client, err := dynamicclient.NewForHTTPClient(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := client.Resource(widgets).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("List: %v, %v", list, err)
	}
	if seen := s.Arrivals(); len(seen) != 1 || seen[0].Header.Get("Authorization") != "" {
		t.Errorf("requests: %+v", seen)
	}
	http.DefaultClient.CloseIdleConnections()
}
