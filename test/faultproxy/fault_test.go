package faultproxy_test

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// healthy responds to each request with 200.
var healthy = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") })

// withFault returns healthy with fault.
func withFault(t *testing.T, fault faultproxy.Fault) http.Handler {
	t.Helper()
	proxied := fault(healthy)
	if proxied == nil {
		t.Fatal("the fault is nil")
	}
	return proxied
}

// codes sends n requests and returns the status codes of the responses.
func codes(t *testing.T, handler http.Handler, n int) []int {
	t.Helper()
	var got []int
	for range n {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, blocks, nil))
		got = append(got, w.Code)
	}
	return got
}

func TestCombinators_ApplyToSomeRequests(t *testing.T) {
	fail := faultproxy.Fail(404)
	for _, tc := range []struct {
		name  string
		fault faultproxy.Fault
		want  []int
	}{
		{"Times", faultproxy.Times(2, fail), []int{404, 404, 200, 200, 200, 200}},
		{"Times none", faultproxy.Times(0, fail), []int{200, 200}},
		{"Times below none", faultproxy.Times(-1, fail), []int{200, 200}},
		{"Alternate", faultproxy.Alternate(fail), []int{200, 404, 200, 404, 200, 404}},
		{"Share", faultproxy.Share(1./3, fail), []int{200, 200, 404, 200, 200, 404}},
		{"Share of most", faultproxy.Share(0.75, fail), []int{200, 404, 404, 404, 200, 404, 404, 404}},
		{"Share of none", faultproxy.Share(-1, fail), []int{200, 200, 200}},
		{"Share of all", faultproxy.Share(2, fail), []int{404, 404, 404}},
		{"Share beyond all", faultproxy.Share(math.Inf(1), fail), []int{404, 404, 404}},
		{"Share that is no number", faultproxy.Share(math.NaN(), fail), []int{200, 200, 200}},
		{"one in another", faultproxy.Alternate(faultproxy.Times(1, fail)), []int{200, 404, 200, 200}},
		{"nil", faultproxy.Times(1, nil), []int{200}},
		{"one that returns nil", faultproxy.Alternate(faultproxy.Respond(nil)), []int{200, 200}},
	} {
		if diff := cmp.Diff(tc.want, codes(t, withFault(t, tc.fault), len(tc.want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestShare_RoundsDownExactProducts(t *testing.T) {
	failed := 0
	for _, code := range codes(t, withFault(t, faultproxy.Share(0.29, faultproxy.Fail(500))), 100) {
		if code == 500 {
			failed++
		}
	}
	if failed != 29 {
		t.Errorf("failed = %d, want 29", failed)
	}
}

func TestCombinators_CountPerInjection(t *testing.T) {
	once := faultproxy.Times(1, faultproxy.Fail(404))
	first, second := withFault(t, once), withFault(t, once)
	codes(t, first, 1)
	if got := codes(t, second, 1); got[0] != 404 {
		t.Errorf("status = %d, want 404", got[0])
	}
}

func TestFor_BeginsWithTheFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := withFault(t, faultproxy.For(5*time.Second, faultproxy.Fail(404)))
		<-time.After(time.Minute)
		got := codes(t, handler, 1)
		<-time.After(5*time.Second - 1)
		got = append(got, codes(t, handler, 1)...)
		<-time.After(1)
		got = append(got, codes(t, handler, 2)...)
		if diff := cmp.Diff([]int{404, 404, 200, 200}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestFor_ATimeThatIsNotPositiveHasNoEffect(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second} {
		if got := codes(t, withFault(t, faultproxy.For(d, faultproxy.Fail(404))), 1); got[0] != 200 {
			t.Errorf("For(%v): status = %d, want 200", d, got[0])
		}
	}
}
