package faultproxy_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// statuses requests blocks n times and returns the status codes.
func statuses(t *testing.T, proxy *faultproxy.Proxy, client *http.Client, n int) []int {
	t.Helper()
	var got []int
	for range n {
		code, _ := get(t, client, proxy.URL()+blocks)
		got = append(got, code)
	}
	return got
}

func TestInject_NestsInOrder(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, faultproxy.Times(1, faultproxy.Fail(401)))
	proxy.Inject(faultproxy.Path("/elsewhere"), faultproxy.Fail(402))
	proxy.Inject(nil, faultproxy.Times(2, faultproxy.Fail(403)))
	if diff := cmp.Diff([]int{401, 403, 403, 200}, statuses(t, proxy, client, 4)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInject_RemoveRemovesOnlyThisFault(t *testing.T) {
	proxy, client := serve(t)
	removeFirst := proxy.Inject(nil, faultproxy.Fail(401))
	removeSecond := proxy.Inject(nil, faultproxy.Fail(403))
	got := statuses(t, proxy, client, 1)
	removeFirst()
	removeFirst()
	got = append(got, statuses(t, proxy, client, 1)...)
	removeSecond()
	got = append(got, statuses(t, proxy, client, 1)...)
	if diff := cmp.Diff([]int{401, 403, 200}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A fault may be removed while it serves a request. The request must not reach earlier faults
// again.
func TestInject_ARemovedFaultPassesRequestsToLaterFaults(t *testing.T) {
	proxy, client := serve(t)
	var remove func()
	passed := 0
	count := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed++
			next.ServeHTTP(w, r)
		})
	}
	proxy.Inject(nil, count)
	remove = proxy.Inject(nil, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			remove()
			next.ServeHTTP(w, r)
		})
	})
	proxy.Inject(nil, faultproxy.Fail(418))
	if got := statuses(t, proxy, client, 1); got[0] != 418 || passed != 1 {
		t.Errorf("status = %d, want 418; passed the first %d times, want 1", got[0], passed)
	}
}

func TestInject_ANilFaultHasNoEffect(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, nil)
	proxy.Inject(nil, func(http.Handler) http.Handler { return nil })
	proxy.Answer(nil, nil)
	if got := statuses(t, proxy, client, 1); got[0] != 200 {
		t.Errorf("status = %d, want 200", got[0])
	}
}
