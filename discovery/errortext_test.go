package discovery_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// planted is in the objects of responses, and must not be in a text.
const planted = "cGxhbnRlZA=="

// Errors of decoders have names, times and bodies of the response.
func TestErrors_HaveNoBodiesAndAreShort(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	object := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a","uid":"u","annotations":{"a":"` + planted + `"}}}`
	documents := map[string]string{
		"a long kind":        `{"kind":"` + long + `"}`,
		"a long time":        `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"a","creationTimestamp":"` + long + `"}}]}`,
		"a long group":       `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Stale"},{"version":"` + long + `"}]}]}`,
		"a long stale group": `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"` + long + `","freshness":"Stale"}]}]}`,
		"long names":         `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"other.com"},"versions":[{"version":"v1","resources":[{"resource":"widgets","responseKind":{"kind":"Widget"},"scope":"Cluster"},{"resource":"widgets` + long + `","singularResource":"widgets","responseKind":{"kind":"Widget"},"scope":"Cluster"}]}]},{"metadata":{"name":"` + long + `"},"versions":[{"version":"v1","resources":[{"resource":"widgets","responseKind":{"kind":"Widget"},"scope":"Cluster","verbs":["` + long + `"]}]}]}]}`,
	}
	lists := map[string]string{
		"a list without a version": `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[` + object + `]}`,
		"a long time in a list":    `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","creationTimestamp":"` + long + `"}}]}`,
		"a long name in a list":    `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"` + long + `"}}]}`,
	}
	s := stubserver.New(t)
	for name, body := range documents {
		t.Run(name, func(t *testing.T) {
			s.Prepare(func(w http.ResponseWriter, r *http.Request) {
				contentType := "application/json"
				if strings.Contains(body, "APIGroupDiscoveryList") {
					contentType += ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
				}
				say(contentType, body)(w, r)
			})
			resolver := discoveryAt(t, s)
			for _, ref := range []string{"widgets", "widgets.example.com", "widget"} {
				_, err := resolver.Resolve(t.Context(), ref)
				checkErrorText(t, err)
			}
			_, err := resolver.Validate(t.Context(), widgets, "list")
			checkErrorText(t, err)
		})
	}
	for name, body := range lists {
		t.Run(name, func(t *testing.T) {
			s.Prepare(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/apis/api") {
					say("application/json", body)(w, r)
					return
				}
				stubserver.ServeWidgets(w, r)
			})
			resolver := discoveryAt(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- resolver.Run(ctx) }()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			limit := time.After(time.Minute)
			for now := resolver.Status(); now.CRDs.Err == nil || now.APIServices.Err == nil; now = resolver.Status() {
				select {
				case <-tick.C:
				case <-limit:
					t.Fatalf("no errors: %+v", now)
				}
			}
			checkErrorText(t, resolver.Status().CRDs.Err)
			checkErrorText(t, resolver.Status().APIServices.Err)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func discoveryAt(t *testing.T, s *stubserver.Server) *discovery.Resolver {
	t.Helper()
	resolver, err := discovery.NewForConfig(s.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return resolver
}

// checkErrorText checks the text of err, which may be nil.
func checkErrorText(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if text := err.Error(); strings.Contains(text, planted) || len(text) > errtext.Limit {
		t.Errorf("%T with %d bytes: %.300s", err, len(text), text)
	}
}
