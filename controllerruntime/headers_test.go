package controllerruntime

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// The requests of mapper and informers have the headers that those of controller-runtime's cache have with the same configuration, and no
// other, apart from Accept and If-None-Match.
func TestNew_RequestsCarryOnlyTheConfig(t *testing.T) {
	// controller-runtime's informers on metadata leave a goroutine.
	forms := []client.Object{&Widget{}, newUnstructured(widgetKind), newMetadata(widgetKind)}
	for name, config := range stubserver.Credentials {
		t.Run(name, func(t *testing.T) {
			s := stubserver.New(t)
			cfg := s.RESTConfig()
			config(cfg)
			want := headersOf(t, s, cfg, cache.New, forms[:2], 2)
			for name, newCache := range map[string]cache.NewCacheFunc{"": NewCache, "packed: ": WithOptions(WithPackedCaches())} {
				informers := 3
				if name != "" {
					informers = 1
				}
				if diff := cmp.Diff(want, headersOf(t, s, cfg, newCache, forms, informers)); diff != "" {
					t.Errorf("%s(-controller-runtime +gvrkit):\n%s", name, diff)
				}
			}
		})
	}
}

// headersOf runs a cache with objects in this number of informers, and returns the headers of its requests, which are the same for each.
func headersOf(t *testing.T, s *stubserver.Server, cfg *rest.Config, newCache cache.NewCacheFunc, objects []client.Object, informers int) http.Header {
	t.Helper()
	s.Prepare(stubserver.ServeWidgets)
	c, err := newCache(cfg, cache.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	for _, object := range objects {
		if _, err := c.GetInformer(ctx, object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	if !c.WaitForCacheSync(ctx) { // before Start, GetInformer does not wait
		t.Error("not synced")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	arrivals, paths := s.Arrivals(), map[string]int{}
	for _, a := range arrivals {
		paths[a.Path]++
		if diff := cmp.Diff(arrivals[0].Carried(), a.Carried()); diff != "" {
			t.Errorf("the headers of %s?%s and of the first request differ:\n%s", a.Path, a.Query, diff)
		}
	}
	if paths["/apis/example.com/v1/widgets"] < informers || len(paths) < 2 {
		t.Errorf("requests of %d informers and of discovery: %v", informers, paths)
	}
	return arrivals[0].Carried()
}
