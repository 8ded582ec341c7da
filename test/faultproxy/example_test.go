package faultproxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

func ExampleProxy_Inject() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{}") // in place of an API server
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	proxy, err := faultproxy.Start(server.URL, transport)
	if err != nil {
		panic(err)
	}
	defer func() { _ = proxy.Close() }()

	// One line for each thing that goes wrong.
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
	proxy.CutWatches(watches)
	proxy.Heal()

	// Of several that match, the first is nearest to the client.
	proxy.Inject(widgets, faultproxy.Times(1, faultproxy.RetryAfter(503, 2*time.Second)))
	proxy.Inject(widgets, faultproxy.Alternate(faultproxy.Fail(404)))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, proxy.URL()+"/apis/example.com/v1/widgets", nil)
		if err != nil {
			panic(err)
		}
		res, err := client.Do(req)
		if err != nil {
			panic(err)
		}
		_ = res.Body.Close()
		fmt.Println(res.StatusCode)
	}
	fmt.Println(proxy.Requests(widgets), "requests,", proxy.OpenWatches(widgets), "open watches")
	// Output:
	// 503
	// 200
	// 404
	// 3 requests, 0 open watches
}
