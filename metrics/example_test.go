package metrics_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/metrics"
)

// newMeteredFactory returns a factory, and a handler for Prometheus with the states of its
// informers and with client-go's metrics of informers. Release name after Shutdown.
func newMeteredFactory(cfg *rest.Config, name *cache.InformerName) (*dynamicinformer.Factory, http.Handler, error) {
	informers := metrics.NewInformerMetrics()
	factory, err := dynamicinformer.NewForConfig(cfg, dynamicinformer.WithInformerMetrics(name, informers))
	if err != nil {
		return nil, nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(factory), informers)
	return factory, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// The factory has one informer, and has not been started.
func Example() {
	name, err := cache.NewInformerName("my-controller")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer name.Release()
	factory, handler, err := newMeteredFactory(&rest.Config{Host: "http://127.0.0.1"}, name)
	if err != nil {
		fmt.Println(err)
		return
	}
	factory.ForResource(widgets)

	scrape := httptest.NewRecorder()
	handler.ServeHTTP(scrape, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(scrape.Body.String()) {
		if strings.HasPrefix(line, "gvrkit_informers{") || strings.HasPrefix(line, "gvrkit_informer_reason{") {
			fmt.Print(line)
		}
	}
	// Output:
	// gvrkit_informer_reason{group="example.com",reason="NotStarted",resource="widgets",version="v1"} 1
	// gvrkit_informers{state="Degraded"} 0
	// gvrkit_informers{state="NotServed"} 0
	// gvrkit_informers{state="Starting"} 0
	// gvrkit_informers{state="Stopped"} 0
	// gvrkit_informers{state="Synced"} 0
	// gvrkit_informers{state="Unknown"} 1
}
