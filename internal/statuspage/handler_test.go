package statuspage_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/status"
)

func TestHandler_WritesWhatIsPreferred(t *testing.T) {
	handler := statuspage.NewHandler(&informers{all: many(1)})
	const browsers = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
	for _, tc := range []struct{ accept, query, want string }{
		{"", "", "text/plain"},
		{"*/*", "", "text/plain"},
		{"image/png", "", "text/plain"},
		{browsers, "", "text/html"},
		{"application/json", "", "application/json"},
		{"application/json, */*", "", "application/json"},
		{"text/html;q=0.5, application/json", "", "application/json"},
		{"text/html;q=0, */*", "", "text/plain"},
		{"text/plain, text/html", "", "text/plain"},
		{"TEXT/HTML ; Q=0.3", "", "text/html"},
		{"text/html;q=nonsense", "", "text/html"},
		{browsers, "?format=json", "application/json"},
		{browsers, "?format=text", "text/plain"},
		{"", "?format=html", "text/html"},
	} {
		got := get(t, handler, "/"+tc.query, tc.accept)
		if kind, _, _ := strings.Cut(got.Header().Get("Content-Type"), ";"); got.Code != http.StatusOK || kind != tc.want || got.Header().Get("Vary") != "Accept" {
			t.Errorf("Accept %q, query %q: %d %q, want %q", tc.accept, tc.query, got.Code, kind, tc.want)
		}
	}
}

func TestHandler_IsReadOnly(t *testing.T) {
	source := &informers{all: many(1)}
	handler := statuspage.NewHandler(source)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "BREW"} {
		got := do(t, handler, method, "/", "")
		if got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow %q", method, got.Code, got.Header().Get("Allow"))
		}
		if body := got.Body.String(); body != "This page is read-only: GET or HEAD.\n" || got.Header().Get("Content-Length") != fmt.Sprint(len(body)) {
			t.Errorf("%s: %q, Content-Length %s", method, body, got.Header().Get("Content-Length"))
		}
	}
	if n := source.asked.Load(); n != 0 {
		t.Errorf("the source was asked %d times", n)
	}
}

func TestHandler_HeadIsGetWithoutTheBody(t *testing.T) {
	handler := statuspage.NewHandler(&informers{all: many(3)})
	for _, target := range []string{"/", "/?resource=none", "/?format=odd"} {
		want, got := do(t, handler, http.MethodGet, target, ""), do(t, handler, http.MethodHead, target, "")
		if got.Code != want.Code || got.Body.Len() != 0 || got.Header().Get("Content-Length") != fmt.Sprint(want.Body.Len()) {
			t.Errorf("%s: %d, %d bytes, Content-Length %s; GET: %d, %d bytes", target, got.Code, got.Body.Len(), got.Header().Get("Content-Length"), want.Code, want.Body.Len())
		}
	}
}

func TestHandler_RefusesWhatItCannotRead(t *testing.T) {
	handler := statuspage.NewHandler(&informers{all: many(1)})
	for _, query := range []string{
		"format=xml", "state=Broken", "offset=-1", "offset=x", "offset=99999999999999999999", "q=" + strings.Repeat("x", 201), "resource=" + strings.Repeat("x", 513), "q=%zz", "a;b=c",
	} {
		got := get(t, handler, "/?"+query, "text/html")
		if got.Code != http.StatusBadRequest || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %d %s", query, got.Code, got.Header().Get("Content-Type"))
		}
	}
	if got := get(t, handler, "/?something=else&offset=7", ""); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "Offset 7 is beyond the last of 1 informer.") {
		t.Errorf("beyond the end: %d %s", got.Code, got.Body)
	}
}

// Every answer has them, whatever it is.
func TestHandler_HeadersAreStrict(t *testing.T) {
	handler := statuspage.NewHandler(&informers{all: many(1)})
	for _, got := range []*httptest.ResponseRecorder{
		get(t, handler, "/", "text/html"), get(t, handler, "/?resource=none", "text/html"), get(t, handler, "/?format=odd", ""), do(t, handler, http.MethodPost, "/", ""),
	} {
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if value := got.Header().Get(name); value != want {
				t.Errorf("%d: %s is %q, want %q", got.Code, name, value, want)
			}
		}
		policy := got.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%d: policy %q", got.Code, policy)
		}
	}
}

// The policy names the script and the style that are sent, to the byte, and there is no other.
func TestHandler_PolicyLetsOurScriptRunAlone(t *testing.T) {
	got := get(t, statuspage.NewHandler(&informers{all: many(1)}), "/", "text/html")
	for _, element := range []string{"script", "style"} {
		found := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(got.Body.String(), -1)
		if len(found) != 1 {
			t.Fatalf("%d elements %s", len(found), element)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		want := fmt.Sprintf("%s-src 'sha256-%s';", element, base64.StdEncoding.EncodeToString(sum[:]))
		if policy := got.Header().Get("Content-Security-Policy"); !strings.Contains(policy, want) {
			t.Errorf("no %s in %s", want, policy)
		}
	}
}

// Links are relative to the table, wherever it is.
func TestHandler_WorksUnderAnyPrefix(t *testing.T) {
	source := &informers{all: many(2)}
	mux := http.NewServeMux()
	mux.Handle("/debug/informers/", statuspage.NewHandler(source))
	mux.Handle("/stripped/", http.StripPrefix("/stripped", statuspage.NewHandler(source)))
	mux.Handle("/exact", statuspage.NewHandler(source))
	mux.Handle("/any/{what...}", statuspage.NewHandler(source))
	reference := regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	for _, path := range []string{"/debug/informers/", "/stripped/", "/exact", "/any/"} {
		for _, query := range []string{"", "?resource=type00000.v1.example.com", "?q=type&offset=1"} {
			got := get(t, mux, path+query, "text/html")
			links := reference.FindAllStringSubmatch(got.Body.String(), -1)
			if got.Code != http.StatusOK || len(links) < 3 {
				t.Errorf("%s%s: %d, %d links", path, query, got.Code, len(links))
			}
			for _, link := range links {
				if !strings.HasPrefix(link[1], "?") && link[1] != "data:," {
					t.Errorf("%s%s: a link to %s", path, query, link[1])
				}
			}
		}
	}
}

// The table is at the path that the handler is mounted at, and a resource one segment below.
func TestHandler_PathsBelowAreResources(t *testing.T) {
	const pods, ships = "pods.v1", "ships.v1.sea.example.com"
	source := &informers{all: []status.Informer{informer(pods, "Synced"), informer(ships, "Synced")}}
	mux := http.NewServeMux()
	for pattern, handler := range map[string]http.Handler{
		"/informers/":             statuspage.NewHandler(source),
		"GET /get/":               statuspage.NewHandler(source),
		"example.com/debug/page/": statuspage.NewHandler(source),
		"/stripped/":              http.StripPrefix("/stripped", statuspage.NewHandler(source)),
		"/bare/":                  http.StripPrefix("/bare/", statuspage.NewHandler(source)),
		"/half/stripped/":         http.StripPrefix("/half", statuspage.NewHandler(source)),
		"/named/{resource}":       statuspage.NewHandler(source),
		"/rest/{rest...}":         statuspage.NewHandler(source),
		"/tenants/{name}/page/":   statuspage.NewHandler(source),
		"/a%20b/%7bc%7d/":         statuspage.NewHandler(source),
		"/exact":                  statuspage.NewHandler(source),
	} {
		mux.Handle(pattern, handler)
	}
	for _, path := range []string{"/informers/", "/get/", "/debug/page/", "/stripped/", "/bare/", "/half/stripped/", "/rest/", "/tenants/a/page/", "/a%20b/%7bc%7d/", "/exact"} {
		checkPage(t, mux, path, http.StatusOK, "2 informers")
	}
	for _, path := range []string{"/informers/", "/get/", "/debug/page/", "/stripped/", "/bare/", "/half/stripped/", "/named/", "/rest/", "/tenants/a/page/", "/a%20b/%7bc%7d/"} {
		checkPage(t, mux, path+pods, http.StatusOK, "pods.v1 at ")
		checkPage(t, mux, path+ships, http.StatusOK, "ships.v1.sea.example.com at ")
		checkPage(t, mux, path+"boats.v1", http.StatusNotFound, "boats.v1 at ")
		checkPage(t, mux, path+"boats", http.StatusNotFound, "boats at ")
	}
	for _, path := range []string{"/informers/", "/stripped/", "/rest/"} {
		checkPage(t, mux, path+pods+"/status", http.StatusNotFound, "Not found")
		checkPage(t, mux, path+pods+"/", http.StatusNotFound, "Not found")
		checkPage(t, mux, path+strings.Repeat("x", 512), http.StatusNotFound, "xxx")
		checkPage(t, mux, path+strings.Repeat("x", 513), http.StatusNotFound, "Not found")
	}
	checkPage(t, mux, "/informers/"+pods+"?resource="+ships, http.StatusOK, "ships.v1.sea.example.com at ")
}

// checkPage expects an answer of that code whose text begins so or, for the table, contains that.
func checkPage(t *testing.T, handler http.Handler, path string, code int, want string) {
	t.Helper()
	got := get(t, handler, "http://example.com"+path, "")
	text := got.Body.String()
	if is := strings.HasPrefix(text, want) || strings.HasPrefix(text, "Informers at") && strings.Contains(text, want); got.Code != code || !is {
		t.Errorf("%s: %d %s, want %d and %q", path, got.Code, text, code, want)
	}
}

// A router that is not an http.ServeMux does not say where it has mounted the handler.
func TestHandler_PathsOfOtherRouters(t *testing.T) {
	handler := statuspage.NewHandler(&informers{all: []status.Informer{informer("pods.v1", "Synced"), informer("pods", "Synced")}})
	for _, path := range []string{"/", "/debug/informers/", "/debug/informers"} {
		checkPage(t, handler, path, http.StatusOK, "2 informers")
	}
	for _, path := range []string{"/pods.v1", "/debug/informers/pods.v1"} {
		checkPage(t, handler, path, http.StatusOK, "pods.v1 at ")
	}
	checkPage(t, handler, "/pods", http.StatusOK, "pods at ")
	checkPage(t, handler, "/debug/informers/boats.v1", http.StatusNotFound, "boats.v1 at ")
	checkPage(t, handler, "/"+strings.Repeat("x", 513), http.StatusNotFound, "Not found")
	stripped := http.StripPrefix("/debug", handler)
	checkPage(t, stripped, "/debug/", http.StatusOK, "2 informers")
	checkPage(t, stripped, "/debug/pods", http.StatusOK, "pods at ")
	checkPage(t, stripped, "/debug/boats", http.StatusNotFound, "boats at ")
}

// Such a router often is the handler of all paths of an http.ServeMux, whose pattern then says nothing of the page.
func TestHandler_PathsOfOtherRoutersBehindAMux(t *testing.T) {
	page := statuspage.NewHandler(&informers{all: []status.Informer{informer("pods.v1", "Synced"), informer("pods", "Synced")}})
	router := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/debug/informers/") {
			page.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	})
	for _, pattern := range []string{"/", "GET /", "/{rest...}"} {
		mux := http.NewServeMux()
		mux.Handle(pattern, router)
		checkPage(t, mux, "/debug/informers/", http.StatusOK, "2 informers")
		checkPage(t, mux, "/debug/informers/pods.v1", http.StatusOK, "pods.v1 at ")
		checkPage(t, mux, "/debug/informers/pods", http.StatusOK, "pods at ")
		checkPage(t, mux, "/debug/informers/boats.v1", http.StatusNotFound, "boats.v1 at ")
	}
	mux := http.NewServeMux() // the page itself is there
	mux.Handle("/", page)
	checkPage(t, mux, "/", http.StatusOK, "2 informers")
	checkPage(t, mux, "/pods", http.StatusOK, "pods at ")
	checkPage(t, mux, "/boats", http.StatusNotFound, "boats at ")
	checkPage(t, mux, "/a/b.v1", http.StatusNotFound, "b.v1 at ")
	checkPage(t, mux, "/a/b", http.StatusOK, "2 informers") // it can't be told from the page of a router
}

// From a resource that the path names, links lead back to the table beside it.
func TestHandler_LinksOfAPathLeadToTheTable(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/informers/", statuspage.NewHandler(&informers{all: many(1)}))
	for _, path := range []string{"type00000.v1.example.com", "other.v1?resource=type00000.v1.example.com"} {
		html := get(t, mux, "/informers/"+path, "text/html").Body.String()
		links := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(html, -1)
		if len(links) < 4 {
			t.Fatalf("%s: %d links", path, len(links))
		}
		for _, link := range links {
			if !strings.HasPrefix(link[1], "./?") && link[1] != "data:," {
				t.Errorf("%s: a link to %s", path, link[1])
			}
		}
	}
}
