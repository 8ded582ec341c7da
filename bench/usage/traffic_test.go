package usage_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/usage"
)

// echo responds to each request with its path. Each byte takes delay.
type echo struct{ delay time.Duration }

func (e echo) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(slow{e.delay, strings.NewReader(req.URL.Path)})}, nil
}

type slow struct {
	delay time.Duration
	from  io.Reader
}

func (s slow) Read(p []byte) (int, error) {
	<-time.After(s.delay)
	return s.from.Read(p[:1])
}

// get reads the responses for some paths.
func get(t *testing.T, transport http.RoundTripper, paths ...string) {
	t.Helper()
	for _, path := range paths {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path, http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Error(err)
		}
		_ = res.Body.Close()
	}
}

func count(delay time.Duration) (*usage.Traffic, http.RoundTripper) {
	cfg := &rest.Config{}
	traffic := usage.Count(cfg)
	return traffic, cfg.WrapTransport(echo{delay})
}

func TestTraffic_CountsDocumentsDefinitionsAndObjects(t *testing.T) {
	for path, want := range map[string]usage.Counts{
		"/api": {Documents: 1}, "/apis": {Documents: 1}, "/api/v1": {Documents: 1}, "/apis/example.com": {Documents: 1}, "/apis/example.com/v1": {Documents: 1},
		"/apis/apiextensions.k8s.io/v1":                                     {Documents: 1},
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":           {Definitions: 1},
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.example": {Definitions: 1},
		"/apis/apiregistration.k8s.io/v1/apiservices":                       {Definitions: 1},
		"/api/v1/pods": {Objects: 1}, "/apis/example.com/v1/widgets": {Objects: 1}, "/apis/example.com/v1/namespaces/n/widgets": {Objects: 1},
	} {
		traffic, transport := count(0)
		get(t, transport, path)
		got := traffic.Counts()
		if want.Objects == 0 {
			want.Bytes = len(path)
		} else {
			want.Received = len(path)
		}
		if diff := cmp.Diff(want, got); diff != "" || traffic.Requests() != 1 {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestTraffic_CountsRequestsBeforeTheFirstForObjects(t *testing.T) {
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	traffic, transport := count(0)
	get(t, transport, "/api", "/apis", crds, "/apis/g/v1/as", "/apis", "/apis/g/v1/bs")
	want := usage.Counts{First: 3, Documents: 3, Definitions: 1, Objects: 2, Bytes: len("/api/apis/apis" + crds), Received: len("/apis/g/v1/as/apis/g/v1/bs")}
	if diff := cmp.Diff(want, traffic.Counts()); diff != "" {
		t.Error(diff)
	}
}

func TestTraffic_IsIdleAfterATimeWithoutReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		traffic, transport := count(time.Second)
		go get(t, transport, "/api")
		synctest.Wait()
		if err := traffic.WaitIdle(t.Context(), 2*time.Second); err != nil || time.Since(begin) != 7*time.Second {
			t.Errorf("idle after %v: %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := traffic.WaitIdle(ctx, time.Hour); err == nil {
			t.Error("no error after the end of the context")
		}
	})
}
