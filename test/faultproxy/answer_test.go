package faultproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var errForbidden = errors.New("faultproxy: 403 Forbidden")

// answerOf returns the response to a request for blocks with fault.
func answerOf(t *testing.T, fault faultproxy.Fault) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	withFault(t, fault).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, blocks, nil))
	return w
}

func decoded(t *testing.T, body string) map[string]any {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return got
}

func TestStatus_IsJSONForAnyMessage(t *testing.T) {
	message := "a \"b\"\n\x7f\a\U000e0001"
	got := answerOf(t, faultproxy.Respond(faultproxy.Status(403, "Forbidden", message)))
	want := map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": message, "reason": "Forbidden", "code": 403.,
	}
	if diff := cmp.Diff(want, decoded(t, got.Body.String())); diff != "" || got.Code != 403 {
		t.Errorf("%d (-want +got):\n%s", got.Code, diff)
	}
}

func TestFail_HasTheReasonOfTheCode(t *testing.T) {
	for code, want := range map[int]string{404: "NotFound", 429: "TooManyRequests", 410: "Expired", 418: ""} {
		got := answerOf(t, faultproxy.Fail(code))
		status := decoded(t, got.Body.String())
		if got.Code != code || status["code"] != float64(code) || status["reason"] != want || got.Header().Get("Content-Type") != "application/json" {
			t.Errorf("Fail(%d): %d %v", code, got.Code, status)
		}
		if after, set := got.Header()["Retry-After"]; set {
			t.Errorf("Fail(%d): Retry-After %q", code, after)
		}
	}
}

func TestFail_ForbiddenNamesTheResourceOfTheRequest(t *testing.T) {
	for path, want := range map[string]*apierrors.StatusError{
		"/apis/crd.projectcalico.org/v1/ipamblocks":            apierrors.NewForbidden(schema.GroupResource{Group: "crd.projectcalico.org", Resource: "ipamblocks"}, "", errForbidden),
		"/api/v1/namespaces/default/pods/a/status":             apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errForbidden),
		"/apis/example.com/v1/namespaces/harbor/ships?watch=1": apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "ships"}, "", errForbidden),
		"/apis/example.com/v1":                                 apierrors.NewForbidden(schema.GroupResource{}, "", errForbidden),
	} {
		w := httptest.NewRecorder()
		faultproxy.Fail(403)(nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		var got metav1.Status
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		status := want.Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		if diff := cmp.Diff(status, got); diff != "" || w.Code != 403 || w.Header().Get("Retry-After") != "" {
			t.Errorf("%s: %d %v (-want +got):\n%s", path, w.Code, w.Header(), diff)
		}
	}
}

func TestFail_AnInvalidCodeBecomes500(t *testing.T) {
	for _, code := range []int{-1, 0, 100, 199, 1000} {
		got := answerOf(t, faultproxy.Fail(code))
		if status := decoded(t, got.Body.String()); got.Code != 500 || status["code"] != 500. || status["reason"] != "InternalError" {
			t.Errorf("Fail(%d): %d %v", code, got.Code, status)
		}
	}
}

func TestStatus_AnInvalidCodeBecomes500(t *testing.T) {
	got := answerOf(t, faultproxy.Respond(faultproxy.Status(0, "Odd", "")))
	if status := decoded(t, got.Body.String()); got.Code != 500 || status["code"] != 500. || status["reason"] != "Odd" {
		t.Errorf("%d %v", got.Code, status)
	}
}

func TestRetryAfter_IsInHeaderAndStatus(t *testing.T) {
	for _, tc := range []struct {
		d      time.Duration
		header string
		status float64
	}{
		{30 * time.Second, "30", 30},
		{1100 * time.Millisecond, "2", 2},
		{0, "0", 0},
		{-time.Second, "0", 0},
	} {
		got := answerOf(t, faultproxy.RetryAfter(503, tc.d))
		want := map[string]any{"retryAfterSeconds": tc.status}
		if diff := cmp.Diff(want, decoded(t, got.Body.String())["details"]); diff != "" || got.Code != 503 || got.Header().Get("Retry-After") != tc.header {
			t.Errorf("%v: %d, header %v (-want +got):\n%s", tc.d, got.Code, got.Header(), diff)
		}
	}
}

func TestGoneStatus_IsExpired(t *testing.T) {
	got := answerOf(t, faultproxy.GoneStatus())
	if status := decoded(t, got.Body.String()); got.Code != 410 || status["code"] != 410. || status["reason"] != "Expired" {
		t.Errorf("%d %v", got.Code, status)
	}
}

func TestHTML_IsAPage(t *testing.T) {
	got := answerOf(t, faultproxy.HTML())
	if got.Code != 200 || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") || !strings.HasPrefix(got.Body.String(), "<!DOCTYPE html>") {
		t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
	}
}

// hung sends a request that hangs. The channel gets the client's error after the request has
// ended.
func hung(t *testing.T, proxy *faultproxy.Proxy, client *http.Client, req *http.Request) <-chan error {
	t.Helper()
	before := proxy.Requests(nil)
	failed := make(chan error, 1)
	go func() {
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		failed <- err
	}()
	eventually(t, "the request arrived", func() bool { return proxy.Requests(nil) > before })
	return failed
}

func TestHang_SendsNoResponseWhenTheProxyCloses(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, faultproxy.Hang())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL()+blocks, strings.NewReader("unread"))
	if err != nil {
		t.Fatal(err)
	}
	failed := hung(t, proxy, client, req)
	if got := proxy.OpenWatches(nil); got != 0 {
		t.Errorf("open watches = %d, want 0", got)
	}
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the client got a response")
	}
}

// net/http reads a part of the body. The proxy must notice that the client disconnects also if
// the body is larger.
func TestHang_EndsWhenTheClientDisconnects(t *testing.T) {
	proxy, client := serve(t)
	left := make(chan struct{})
	proxy.Inject(nil, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(left)
			next.ServeHTTP(w, r)
		})
	})
	proxy.Inject(nil, faultproxy.Hang())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxy.URL()+blocks, strings.NewReader(strings.Repeat("x", 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	req.Body = &announced{ReadCloser: req.Body, end: written}
	ctx, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	failed := hung(t, proxy, client, req.WithContext(ctx))
	<-written
	disconnect()
	if err := <-failed; err == nil {
		t.Error("the client got a response")
	}
	<-left
}

func TestHang_IsAnOpenWatchUntilCut(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, faultproxy.Hang())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL()+blocks+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := hung(t, proxy, client, req)
	proxy.Heal() // does not end the request
	if got := proxy.CutWatches(nil); got != 1 {
		t.Errorf("cut = %d, want 1", got)
	}
	if err := <-failed; err == nil {
		t.Error("the client got a response")
	}
}

// A caller with a timeout of its own must not see a complete response.
func TestHang_AbortsTheResponse(t *testing.T) {
	ctx, disconnect := context.WithCancel(t.Context())
	disconnect()
	defer func() {
		if reason, _ := recover().(error); !errors.Is(reason, http.ErrAbortHandler) {
			t.Errorf("panic with %v", reason)
		}
	}()
	faultproxy.Hang()(healthy).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, blocks, nil))
}

// announced is a reader that closes end when it has been read to its end.
type announced struct {
	io.ReadCloser
	end chan struct{}
}

func (a *announced) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	if err == io.EOF && a.end != nil {
		close(a.end)
		a.end = nil
	}
	return n, err
}

func TestExpireContinue_PassesTheFirstPages(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("continue") {
		case "":
			_, _ = io.WriteString(w, `{"metadata":{"continue":"second"},"items":[1]}`)
		case "second":
			_, _ = io.WriteString(w, `{"metadata":{"continue":"third"},"items":[2]}`)
		default:
			_, _ = io.WriteString(w, `{"metadata":{},"items":[3]}`)
		}
	})
	for allowed, want := range [][]int{{200, 410, 410}, {200, 410, 410}, {200, 200, 410}, {200, 200, 200}} {
		faulty := faultproxy.ExpireContinue(allowed)(pages)
		for range 2 { // of a second list, too
			for page, token := range []string{"", "second", "third"} {
				w := httptest.NewRecorder()
				faulty.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, blocks+"?continue="+token, nil))
				if w.Code != want[page] {
					t.Errorf("ExpireContinue(%d): page %d: %d, want %d", allowed, page+1, w.Code, want[page])
				}
				if w.Code == http.StatusGone && decoded(t, w.Body.String())["reason"] != "Expired" {
					t.Errorf("got %s", w.Body)
				}
			}
		}
		w := httptest.NewRecorder()
		faulty.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, blocks+"?watch=1&continue=other", nil))
		if w.Code != http.StatusOK {
			t.Errorf("ExpireContinue(%d): a watch gets %d", allowed, w.Code)
		}
	}
}
