package dynamicinformer_test

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// A server's audit log should say whose informers these are, as it does of
// client-go's.
func TestNewForConfig_SaysWhoItIs(t *testing.T) {
	for agent, want := range map[string]string{"": rest.DefaultKubernetesUserAgent(), "mine/1.0": "mine/1.0"} {
		s := serve(t)
		cfg := s.config()
		cfg.UserAgent = agent
		f, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithDiscovery(nil))
		if err != nil {
			t.Fatal(err)
		}
		arrived := make(chan string, 100)
		s.prepare(func(w http.ResponseWriter, r *http.Request) {
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
