package faultproxy_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// page is the body that serveDocument sends. It is longer than net/http's buffers.
var page = `{"kind":"List","items":["` + strings.Repeat("0123456789", 5000) + `"]}` + "\n"

// serveDocument serves page: compressed if the client accepts that, 304 if the client has it,
// with its length at some paths, and as a watch without an end.
func serveDocument(t *testing.T) (*faultproxy.Proxy, *http.Client) {
	t.Helper()
	return serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"page"`)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
			return
		case strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			_, _ = io.WriteString(compressed, page)
			_ = compressed.Close()
			return
		case strings.HasSuffix(r.URL.Path, "/sized"):
			w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		}
		if r.URL.Query().Has("watch") {
			w.(http.Flusher).Flush() // sends the header first
			fmt.Fprint(w, page)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprint(w, page)
	}))
}

// read requests url, with the ETag of the page.
func read(t *testing.T, client *http.Client, url string) answer {
	t.Helper()
	return fetch(t, client, url, "If-None-Match", `"page"`)
}

var shapes = []string{"", "/sized", "?watch=true"}

func TestCutAt_BreaksTheConnection(t *testing.T) {
	proxy, client := serveDocument(t)
	for _, n := range []int{-1, 0, 1, 40_000} {
		remove := proxy.Inject(nil, faultproxy.CutAt(n))
		for _, shape := range shapes {
			got := read(t, client, proxy.URL()+blocks+shape)
			if !errors.Is(got.err, io.ErrUnexpectedEOF) || got.body != page[:max(0, n)] || got.code != http.StatusOK {
				t.Errorf("CutAt(%d), %q: %d, %d bytes, %v", n, shape, got.code, len(got.body), got.err)
			}
		}
		remove()
	}
}

func TestCutAt_SendsTheHeaderOfAnEmptyBody(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, faultproxy.CutAt(0))
	proxy.Answer(nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if got := read(t, client, proxy.URL()+blocks); !errors.Is(got.err, io.ErrUnexpectedEOF) || got.code != http.StatusOK {
		t.Errorf("%d, %v", got.code, got.err)
	}
}

func TestCutAt_DoesNotChangeShorterBodies(t *testing.T) {
	proxy, client := serveDocument(t)
	proxy.Inject(nil, faultproxy.CutAt(len(page)+1))
	for _, shape := range []string{"", "/sized"} {
		if got := read(t, client, proxy.URL()+blocks+shape); got.err != nil || got.body != page {
			t.Errorf("%q: %d bytes, %v", shape, len(got.body), got.err)
		}
	}
}

func TestCutAt_CutsAWatchAtItsLastByte(t *testing.T) {
	proxy, client := serveDocument(t)
	proxy.Inject(nil, faultproxy.CutAt(len(page)))
	if got := read(t, client, proxy.URL()+blocks+"?watch=true"); !errors.Is(got.err, io.ErrUnexpectedEOF) || got.body != page {
		t.Errorf("%d bytes, %v", len(got.body), got.err)
	}
}

func TestTruncate_EndsTheBodyWithoutAnError(t *testing.T) {
	proxy, client := serveDocument(t)
	for _, n := range []int{-1, 0, 1, 40_000, len(page)} {
		remove := proxy.Inject(nil, faultproxy.Truncate(n))
		for _, shape := range shapes {
			got := read(t, client, proxy.URL()+blocks+shape)
			if got.err != nil || got.body != page[:max(0, n)] || got.header.Get("ETag") != "" {
				t.Errorf("Truncate(%d), %q: %d bytes, %v, %v", n, shape, len(got.body), got.err, got.header)
			}
		}
		remove()
	}
}

func TestTruncate_StopsHandlersThatIgnoreErrors(t *testing.T) {
	proxy, client := serve(t)
	proxy.Inject(nil, faultproxy.Truncate(2))
	proxy.Answer(nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := fmt.Fprint(w, "abc"); n != 2 || err == nil {
			t.Errorf("wrote %d, %v, want 2", n, err)
		}
		<-r.Context().Done()
	}))
	if got := read(t, client, proxy.URL()+blocks); got.err != nil || got.body != "ab" {
		t.Errorf("%q, %v", got.body, got.err)
	}
}

// An error of the server before the end is not hidden.
func TestTruncate_KeepsAnErrorBeforeTheEnd(t *testing.T) {
	proxy, client := serveDocument(t)
	proxy.Inject(nil, faultproxy.Truncate(10))
	proxy.Inject(nil, faultproxy.CutAt(5))
	if got := read(t, client, proxy.URL()+blocks); !errors.Is(got.err, io.ErrUnexpectedEOF) || got.body != page[:5] {
		t.Errorf("%q, %v", got.body, got.err)
	}
}

func TestTruncate_PassesAPanicOn(t *testing.T) {
	defer func() {
		if reason := recover(); reason != "bug" {
			t.Errorf("panic with %v", reason)
		}
	}()
	buggy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "abc")
		panic("bug")
	})
	through(t, faultproxy.Truncate(1), buggy, blocks)
}

func TestGarble_ReplacesLaterBytesByNULs(t *testing.T) {
	proxy, client := serveDocument(t)
	for _, n := range []int{-1, 0, 30, 40_000} {
		remove := proxy.Inject(nil, faultproxy.Garble(n))
		for _, shape := range []string{"", "/sized"} {
			got := read(t, client, proxy.URL()+blocks+shape)
			whole := max(0, n)
			if got.err != nil || got.body != page[:whole]+strings.Repeat("\x00", len(page)-whole) || got.header.Get("ETag") != "" || json.Valid([]byte(got.body)) {
				t.Errorf("Garble(%d), %q: %d bytes, %v, %v", n, shape, len(got.body), got.err, got.header)
			}
		}
		remove()
	}
}

func TestGarble_DoesNotChangeShorterBodies(t *testing.T) {
	proxy, client := serveDocument(t)
	proxy.Inject(nil, faultproxy.Garble(len(page)))
	if got := read(t, client, proxy.URL()+blocks); got.err != nil || got.body != page {
		t.Errorf("%d bytes, %v", len(got.body), got.err)
	}
}

func TestHangAt_SendsTheBytesAndThenNothing(t *testing.T) {
	proxy, client := serveDocument(t)
	for _, n := range []int{-1, 0, 1, 40_000} {
		remove := proxy.Inject(nil, faultproxy.HangAt(n))
		for _, shape := range shapes {
			status, body := open(t, client, proxy.URL()+blocks+shape)
			got := make([]byte, max(0, n))
			if _, err := io.ReadFull(body, got); err != nil || string(got) != page[:len(got)] || status != http.StatusOK {
				t.Errorf("HangAt(%d), %q: %d, %v", n, shape, status, err)
			}
			more := make(chan error, 1)
			go func() { _, err := body.Read(make([]byte, 1)); more <- err }()
			select {
			case err := <-more:
				t.Fatalf("HangAt(%d), %q: the body goes on or ends: %v", n, shape, err)
			case <-time.After(20 * time.Millisecond):
			}
			_ = body.Close()
			if err := <-more; err == nil {
				t.Errorf("HangAt(%d), %q: a closed body has bytes", n, shape)
			}
		}
		remove()
	}
}

func TestHangAt_PassesShorterBodies(t *testing.T) {
	proxy, client := serveDocument(t)
	proxy.Inject(nil, faultproxy.HangAt(len(page)+1))
	if got := read(t, client, proxy.URL()+blocks); got.err != nil || got.body != page {
		t.Errorf("%d bytes, %v", len(got.body), got.err)
	}
}

func TestBandwidth_LimitsBytesPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		begun := time.Now()
		faultproxy.Bandwidth(1000)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, page[:1500])
			fmt.Fprint(w, page[1500:3000])
		})).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		if took := time.Since(begun); w.Body.String() != page[:3000] || took != 3*time.Second {
			t.Errorf("%d bytes in %v, want 3000 in 3s", w.Body.Len(), took)
		}
	})
}

func TestBandwidth_EndsWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var failed error
		faultproxy.Bandwidth(1)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, failed = io.WriteString(w, page)
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if !errors.Is(failed, context.DeadlineExceeded) {
			t.Errorf("the write returns %v", failed)
		}
	})
}

func TestBandwidth_WithoutALimitHasNoEffect(t *testing.T) {
	if faultproxy.Bandwidth(0) != nil || faultproxy.Bandwidth(-1) != nil {
		t.Error("there is a fault")
	}
}
