package faultproxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

func TestFaults_RequestJSONWithoutCompression(t *testing.T) {
	for accept, want := range map[string]string{
		"": "",
		"application/json;as=Table;v=v1,application/json": "application/json;as=Table;v=v1,application/json",
		"application/vnd.kubernetes.protobuf, */*;q=0.5":  "*/*;q=0.5",
		"application/vnd.kubernetes.protobuf":             "application/vnd.kubernetes.protobuf", // the client accepts no JSON
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, blocks, nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		faultproxy.Garble(1)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Accept"); got != want {
				t.Errorf("Accept %q became %q, want %q", accept, got, want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
		if got := r.Header.Get("Accept"); got != accept {
			t.Errorf("the client's own Accept became %q", got)
		}
	}
}

func TestFaults_SeeTheHeaderThatAFlushSends(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, faultproxy.Truncate(1))
	proxy.Answer(nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "ab")
	}))
	if status, body := get(t, client, proxy.URL()+blocks); status != http.StatusOK || body != "a" {
		t.Errorf("%d %q", status, body)
	}
}

func TestFaults_PassResponseControllerCallsOn(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, faultproxy.Garble(10))
	proxy.Answer(nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
			t.Error(err)
		}
	}))
	get(t, client, proxy.URL()+blocks)
}

// Another fault may read the status before net/http does.
func TestFaults_SendOneHeader(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, faultproxy.StaleGroup("apps"))
	proxy.Inject(nil, faultproxy.Bandwidth(1_000_000))
	proxy.Inject(nil, faultproxy.Fail(http.StatusForbidden))
	if status, body := get(t, client, proxy.URL()+"/apis"); status != http.StatusForbidden {
		t.Errorf("%d %q, want 403", status, body)
	}
}
