package metrics_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/metrics"
)

// planted is in everything that no text may show: the token, the password in the address of the server, and objects, also in the bodies
// of failures.
const planted = "c2VjcmV0"

// faults are responses to any request. A short text, as proxies send it, would be shown: these are objects.
var faults = []stubserver.Reply{
	stubserver.Respond(500, "text/plain", `{"apiVersion":"v1","kind":"Secret","data":"`+planted+`"}`),
	stubserver.JSON(`{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"5"},"items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","resourceVersion":"4"},"data":"` + planted + `"}]}`),
	stubserver.Respond(403, "application/json", `{"apiVersion":"v1","kind":"Secret","data":"`+planted+`"}`),
	stubserver.Break(`{"apiVersion":"example.com/v1","kind":"WidgetList","items":[{"data":"` + planted),
	stubserver.Respond(200, "text/html", "<html>"+strings.Repeat(" ", 2000)+planted+"</html>"),
	stubserver.Stream(stubserver.Event("ADDED", `{"apiVersion":"v1","data":"`+planted+`"}`), `{"type":"ADDED","object":{"data":"`+planted),
	stubserver.Respond(429, "text/plain", "kind: Secret\ndata:\n  password: "+planted+"\n"),
	stubserver.Respond(200, "application/json", `{"kind":"Secret","data":"`+planted+`"}`),
	stubserver.Stream(stubserver.Event("ERROR", `{"apiVersion":"v1","kind":"Secret","data":"`+planted+`"}`)),
	stubserver.WithHeader("Location", "http://127.0.0.1:1/"+planted, stubserver.Respond(302, "text/html", "")),
	stubserver.Respond(401, "", `{"data":"`+planted+`"}`),
}

// The log, the status, its page, errors and metrics show no secret, after each fault and after the server has gone. client-go logs some bodies
// itself, from verbosity 5 on.
func TestTexts_ShowNoSecret(t *testing.T) {
	server := stubserver.New(t)
	var served atomic.Int64
	server.Prepare(func(w http.ResponseWriter, r *http.Request) {
		faults[int(served.Add(1)-1)%len(faults)](w, r)
	})
	withToken, withPassword := server.RESTConfig(), server.RESTConfig()
	withToken.BearerToken = planted
	address, err := url.Parse(withPassword.Host)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("user", planted)
	withPassword.Host = address.String()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(4), ktesting.AnyToString(func(v any) string { return fmt.Sprintf("%+v", v) })))
	configs := map[string]*rest.Config{"with a token": withToken, "with a password": withPassword}
	for name, cfg := range configs {
		for discovery, opts := range map[string][]dynamicinformer.Option{"and discovery": nil, "without discovery": {dynamicinformer.WithDiscovery(nil)}} {
			t.Run(name+" "+discovery, func(t *testing.T) {
				served.Store(0)
				searchTexts(t, cfg, logger, func() bool { return served.Load() >= int64(len(faults)) }, opts)
			})
		}
	}
	server.CloseClientConnections()
	server.Close()
	for name, cfg := range configs {
		t.Run(name+" and without a server", func(t *testing.T) {
			begun := time.Now()
			searchTexts(t, cfg, logger, func() bool { return time.Since(begun) > time.Second }, nil)
		})
	}
	for _, line := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
		checkHides(t, "the log", fmt.Sprintf("%s %+v %v %v", line.Message, line.Err, line.WithKVList, line.ParameterKVList))
	}
}

// searchTexts runs an informer until enough returns true, and searches the secret in all texts about it.
func searchTexts(t *testing.T, cfg *rest.Config, logger klog.Logger, enough func() bool, opts []dynamicinformer.Option) {
	t.Helper()
	handled := make(chan error, 100)
	f, err := dynamicinformer.NewForConfig(cfg, append(opts, dynamicinformer.WithWatchErrorHandler(func(_ context.Context, _ *cache.Reflector, err error) {
		select {
		case handled <- err:
		default:
		}
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	defer shutdown(t, f)
	collector := metrics.NewCollector(f)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	f.Start(klog.NewContext(t.Context(), logger))
	l, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithAllowAbsent())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !enough() || l.Status().Err == nil; l.Retry() {
		if time.Now().After(end) {
			t.Fatalf("not enough faults: %+v", l.Status())
		}
		wait, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := l.WaitForSync(wait); err != nil {
			checkHides(t, "WaitForSync", fmt.Sprintf("%v\n%+v\n%#v", err, err, err))
		}
		now := l.Status()
		checkHides(t, "the status", fmt.Sprintf("%v\n%+v\n%v", now, now, now.Err))
		<-wait.Done()
		cancel()
	}
	checkHides(t, "Explain", f.Explain(widgets).String())
	pages := map[string]http.Handler{"the page": f.Handler(), "the metrics": promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
	for name, handler := range pages {
		for _, query := range []string{"", "?format=json", "?format=text", "?format=html", "?format=html&resource=widgets.v1.example.com"} {
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+query, nil))
			if !bytes.Contains(response.Body.Bytes(), []byte("widgets")) {
				t.Errorf("%s%s does not have the type", name, query)
			}
			checkHides(t, name, response.Body.String())
		}
	}
	for len(handled) > 0 { // the informer still runs
		err := <-handled
		checkHides(t, "the watch error handler", fmt.Sprintf("%v\n%+v\n%#v", err, err, err))
	}
}

func checkHides(t *testing.T, where, text string) {
	t.Helper()
	if at := strings.Index(text, planted); at >= 0 {
		t.Errorf("%s shows a secret: …%s…", where, text[max(0, at-200):min(len(text), at+100)])
	}
}
