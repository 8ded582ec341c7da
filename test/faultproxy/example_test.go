package faultproxy_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// This example has two faults for the requests of one resource. The first one is nearest to the
// client.
func ExampleProxy_Inject() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) // instead of an API server
	defer server.Close()
	transport := &http.Transport{DisableKeepAlives: true}
	proxy, err := faultproxy.Start(server.URL, transport)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = proxy.Close() }()

	widgets := faultproxy.GVR("example.com", "v1", "widgets")
	proxy.Inject(widgets, faultproxy.Times(1, faultproxy.RetryAfter(503, 2*time.Second)))
	proxy.Inject(widgets, faultproxy.Alternate(faultproxy.Fail(404)))
	for range 3 {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, proxy.URL()+"/apis/example.com/v1/widgets", nil)
		if err != nil {
			log.Fatal(err)
		}
		answer, err := transport.RoundTrip(req)
		if err != nil {
			log.Fatal(err)
		}
		_ = answer.Body.Close()
		fmt.Println(answer.StatusCode)
	}
	fmt.Println(proxy.Requests(widgets), "requests,", proxy.OpenWatches(widgets), "open watches")
	// Output:
	// 503
	// 200
	// 404
	// 3 requests, 0 open watches
}

// Each fault is one line.
func ExampleFault() {
	proxy, err := faultproxy.Start("http://127.0.0.1:8080", http.DefaultTransport)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = proxy.Close() }()

	widgets := faultproxy.GVR("example.com", "v1", "widgets")
	watches := faultproxy.All(widgets, faultproxy.Verb("watch"))
	proxy.Inject(widgets, faultproxy.For(5*time.Second, faultproxy.Fail(404)))
	proxy.Inject(widgets, faultproxy.Share(0.1, faultproxy.Hang()))
	proxy.Inject(widgets, faultproxy.Times(3, faultproxy.CutAt(100)))
	proxy.Inject(widgets, faultproxy.Garble(100))
	proxy.Inject(faultproxy.Path("/apis"), faultproxy.HTML())
	proxy.Inject(faultproxy.AnyDiscovery(), faultproxy.StaleGroup("metrics.k8s.io"))
	proxy.Inject(watches, faultproxy.NeverInitialEventsEnd())
	proxy.Inject(watches, faultproxy.DelayBookmarks(time.Second))
	proxy.Inject(watches, faultproxy.Times(1, faultproxy.GoneEvent()))
	fmt.Println(proxy.CutWatches(watches), "watches cut")
	proxy.Heal() // removes all faults
	// Output: 0 watches cut
}
