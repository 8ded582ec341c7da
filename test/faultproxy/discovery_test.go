package faultproxy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

const (
	aggregatedGroups = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"big":12345678901234567890,"items":[
		{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments"}],"freshness":"Current"}]},
		{"metadata":{"name":"metrics.k8s.io"},"versions":[
			{"version":"v1","resources":[{"resource":"nodes"}],"freshness":"Current"},
			{"version":"v1beta1","resources":[{"resource":"pods"}]}]}]}`
	brokenGroups = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"big":12345678901234567890,"items":[
		{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments"}],"freshness":"Current"}]},
		{"metadata":{"name":"metrics.k8s.io"},"versions":[
			{"version":"v1","freshness":"Stale"},
			{"version":"v1beta1","freshness":"Stale"}]}]}`
	staleGroups = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"big":12345678901234567890,"items":[
		{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments"}],"freshness":"Current"}]},
		{"metadata":{"name":"metrics.k8s.io"},"versions":[
			{"version":"v1","resources":[{"resource":"nodes"}],"freshness":"Stale"},
			{"version":"v1beta1","resources":[{"resource":"pods"}],"freshness":"Stale"}]}]}`
	aggregatedCore = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"creationTimestamp":null},"versions":[{"version":"v1","resources":[{"resource":"pods"}]}]}]}`
	brokenCore     = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"creationTimestamp":null},"versions":[{"version":"v1","freshness":"Stale"}]}]}`
	legacyGroups   = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"metrics.k8s.io"}]}`
	serverETag     = `"server"`
	asAggregated   = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	metrics        = "metrics.k8s.io"
)

// serveDiscovery starts a server that has only discovery documents.
func serveDiscovery(t *testing.T) (*faultproxy.Proxy, *http.Client) {
	t.Helper()
	return serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := r.URL.Path
		aggregated := strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList")
		switch {
		case aggregated && r.URL.Path == "/apis":
			body = aggregatedGroups
		case aggregated && r.URL.Path == "/api":
			body = aggregatedCore
		case r.URL.Path == "/apis":
			body = legacyGroups
		}
		if aggregated {
			w.Header().Set("ETag", serverETag)
		}
		if r.Header.Get("If-None-Match") == serverETag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
	}))
}

// ask requests url with these headers.
func ask(t *testing.T, client *http.Client, url, accept, etag string) answer {
	t.Helper()
	got := fetch(t, client, url, "Accept", accept, "If-None-Match", etag)
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got
}

// parsed decodes JSON. Numbers keep their text.
func parsed(t *testing.T, body string) any {
	t.Helper()
	var got any
	numbers := json.NewDecoder(strings.NewReader(body))
	numbers.UseNumber()
	if err := numbers.Decode(&got); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return got
}

func TestGroupFaults_ChangeTheAggregatedDocument(t *testing.T) {
	for _, tc := range []struct {
		name       string
		fault      faultproxy.Fault
		path, want string
	}{
		{"BreakGroup", faultproxy.BreakGroup(metrics), "/apis", brokenGroups},
		{"DeadGroup", faultproxy.DeadGroup(metrics), "/apis", brokenGroups},
		{"StaleGroup", faultproxy.StaleGroup(metrics), "/apis", staleGroups},
		{"BreakGroup of another", faultproxy.BreakGroup("batch"), "/apis", aggregatedGroups},
		{"BreakGroup of the core", faultproxy.BreakGroup(""), "/apis", aggregatedGroups},
		{"BreakGroup of the core", faultproxy.BreakGroup(""), "/api", brokenCore},
		{"BreakGroup", faultproxy.BreakGroup(metrics), "/api", aggregatedCore},
	} {
		proxy, client := serveDiscovery(t)
		proxy.Inject(faultproxy.AnyDiscovery(), tc.fault)
		got := ask(t, client, proxy.URL()+tc.path, asAggregated, "")
		if diff := cmp.Diff(parsed(t, tc.want), parsed(t, got.body)); diff != "" || got.code != http.StatusOK {
			t.Errorf("%s in %s: %d (-want +got):\n%s", tc.name, tc.path, got.code, diff)
		}
	}
}

func TestGroupFaults_BreakTheDocumentsOfTheGroup(t *testing.T) {
	faults := map[string]faultproxy.Fault{
		"BreakGroup": faultproxy.BreakGroup(metrics), "DeadGroup": faultproxy.DeadGroup(metrics), "StaleGroup": faultproxy.StaleGroup(metrics),
	}
	for name, fault := range faults {
		pods := 200
		if name == "DeadGroup" {
			pods = 503
		}
		proxy, client := serveDiscovery(t)
		proxy.Inject(nil, fault)
		for path, want := range map[string]int{
			"/apis/metrics.k8s.io": 503, "/apis/metrics.k8s.io/v1beta1": 503, "/apis/metrics.k8s.io/v1beta1/pods": pods,
			"/apis/apps": 200, "/apis/apps/v1": 200, "/api/v1": 200,
		} {
			if got := ask(t, client, proxy.URL()+path, "", ""); got.code != want {
				t.Errorf("%s, %s: status = %d, want %d", name, path, got.code, want)
			}
		}
	}
}

func TestGroupFaults_BreakTheDocumentsOfTheCoreGroup(t *testing.T) {
	proxy, client := serveDiscovery(t)
	proxy.Inject(nil, faultproxy.BreakGroup(""))
	for path, want := range map[string]int{"/api": 200, "/api/v1": 503, "/api/v1/pods": 200, "/apis/apps/v1": 200} {
		if got := ask(t, client, proxy.URL()+path, "", ""); got.code != want {
			t.Errorf("%s: status = %d, want %d", path, got.code, want)
		}
	}
}

func TestGroupFaults_DoNotChangeTheLegacyDocument(t *testing.T) {
	proxy, client := serveDiscovery(t)
	proxy.Inject(nil, faultproxy.BreakGroup(metrics))
	if got := ask(t, client, proxy.URL()+"/apis", "application/json", ""); got.body != legacyGroups {
		t.Errorf("%s", got.body)
	}
}

// A client that has the server's document gets the changed one, then 304 for it, and after the
// fault the server's document again.
func TestGroupFaults_ChangeTheETag(t *testing.T) {
	proxy, client := serveDiscovery(t)
	remove := proxy.Inject(nil, faultproxy.StaleGroup(metrics))
	changed := ask(t, client, proxy.URL()+"/apis", asAggregated, serverETag)
	etag := changed.header.Get("ETag")
	if changed.code != http.StatusOK || etag == serverETag || !strings.HasPrefix(etag, `"`) || !strings.Contains(changed.body, "Stale") {
		t.Errorf("%d, ETag %s, %s", changed.code, etag, changed.body)
	}
	if kept := ask(t, client, proxy.URL()+"/apis", asAggregated, etag); kept.code != http.StatusNotModified || kept.body != "" || kept.header.Get("ETag") != etag {
		t.Errorf("%d, ETag %s, %s", kept.code, kept.header.Get("ETag"), kept.body)
	}
	remove()
	if healed := ask(t, client, proxy.URL()+"/apis", asAggregated, etag); healed.code != http.StatusOK || healed.body != aggregatedGroups {
		t.Errorf("%d, %s", healed.code, healed.body)
	}
}

func TestGroupFaults_KeepTheETagOfAnUnchangedDocument(t *testing.T) {
	proxy, client := serveDiscovery(t)
	proxy.Inject(nil, faultproxy.StaleGroup("batch"))
	if got := ask(t, client, proxy.URL()+"/apis", asAggregated, serverETag); got.code != http.StatusNotModified || got.body != "" {
		t.Errorf("%d, %s", got.code, got.body)
	}
}

func TestGroupFaults_PassFailuresOn(t *testing.T) {
	proxy, client := serveDiscovery(t)
	proxy.Inject(nil, faultproxy.StaleGroup(metrics))
	proxy.Inject(nil, faultproxy.RetryAfter(429, 1))
	if got := ask(t, client, proxy.URL()+"/apis", asAggregated, ""); got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "TooManyRequests") {
		t.Errorf("%d %v %s", got.code, got.header, got.body)
	}
}

func TestGroupFaults_DoNotChangeOtherKinds(t *testing.T) {
	other := strings.Replace(aggregatedGroups, "APIGroupDiscoveryList", "List", 1)
	for _, document := range []string{other, "{", "[]", "null", ""} {
		if got := through(t, faultproxy.BreakGroup(metrics), streaming(document), "/apis"); got != document {
			t.Errorf("%s became %s", document, got)
		}
	}
}

func TestGroupFaults_WaitForTheFinalHeader(t *testing.T) {
	hinting := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, legacyGroups)
	})
	w := httptest.NewRecorder()
	faultproxy.BreakGroup(metrics)(hinting).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis", nil))
	if w.Code != http.StatusOK || w.Body.String() != legacyGroups {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A server that adds a group after the injection.
func TestStaleDiscovery_KeepsTheDocuments(t *testing.T) {
	var later atomic.Bool
	documents := map[string]string{
		"/api": `{"versions":["v1"]}`, "/api/v1": "core", "/apis/apps": "group", "/apis/apps/v1": "apps", "/version": "version",
		"/apis": `{"groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1"},{"groupVersion":"apps/v1beta1"}]}]}`,
	}
	proxy, client := serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := documents[r.URL.Path]
		if strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList") {
			body = "aggregated" + r.URL.Path
			w.Header().Set("Etag", `"`+body+`"`)
		}
		if later.Load() {
			body = "later"
		}
		if body == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, body)
	}))
	remove := proxy.Inject(nil, faultproxy.StaleDiscovery())
	later.Store(true)
	for path, want := range documents {
		if path == "/version" {
			want = "later"
		}
		if got := fetch(t, client, proxy.URL()+path); got.body != want || got.code != http.StatusOK {
			t.Errorf("%s: %d %q, want %q", path, got.code, got.body, want)
		}
	}
	for _, path := range []string{"/api", "/apis"} {
		if got := fetch(t, client, proxy.URL()+path, "Accept", asAggregated); got.body != "aggregated"+path {
			t.Errorf("aggregated %s: %q", path, got.body)
		}
		if got := fetch(t, client, proxy.URL()+path, "Accept", asAggregated, "If-None-Match", `"aggregated`+path+`"`); got.code != http.StatusNotModified {
			t.Errorf("aggregated %s: %d, want 304", path, got.code)
		}
	}
	for _, path := range []string{"/apis/new.example.com", "/apis/apps/v1beta1"} {
		if got := fetch(t, client, proxy.URL()+path); got.code != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.code)
		}
	}
	remove()
	if got := fetch(t, client, proxy.URL()+"/apis"); got.body != "later" {
		t.Errorf("after the fault: %q", got.body)
	}
}

// A group may have a server that is down.
func TestStaleDiscovery_KeepsErrors(t *testing.T) {
	proxy, client := serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api":
			w.WriteHeader(http.StatusForbidden)
		case "/apis":
			_, _ = io.WriteString(w, `{"groups":[{"name":"a","versions":[{"groupVersion":"a/v1"},{"groupVersion":"a/v2"}]}]}`)
		case "/apis/a/v1":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/apis/a/v2":
			panic(http.ErrAbortHandler)
		}
	}))
	proxy.Inject(nil, faultproxy.StaleDiscovery())
	for path, want := range map[string]int{
		"/api": http.StatusForbidden, "/api/v1": http.StatusServiceUnavailable, "/apis": http.StatusOK, "/apis/a": http.StatusOK,
		"/apis/a/v1": http.StatusServiceUnavailable, "/apis/a/v2": http.StatusBadGateway, "/apis/b": http.StatusNotFound,
	} {
		if got := fetch(t, client, proxy.URL()+path); got.code != want {
			t.Errorf("%s: %d, want %d", path, got.code, want)
		}
	}
}

func TestStaleDiscovery_IsUnavailableWithoutDocuments(t *testing.T) {
	proxy, client := serveDiscovery(t)
	dead := faultproxy.StaleDiscovery()(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	proxy.Answer(nil, dead)
	if got := fetch(t, client, proxy.URL()+"/apis"); got.code != http.StatusServiceUnavailable {
		t.Errorf("got %d", got.code)
	}
}

func TestStaleDiscovery_WaitsHalfAMinuteForTheDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		stale := faultproxy.StaleDiscovery()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"groups":[{"name":"a","versions":[{"groupVersion":"a/v1"}]}]}`)
			if r.URL.Path == "/apis/a/v1" {
				<-r.Context().Done()
			}
		}))
		if waited := time.Since(began); waited != 30*time.Second {
			t.Errorf("waited for %v", waited)
		}
		for path, want := range map[string]int{"/apis": http.StatusOK, "/apis/a/v1": http.StatusServiceUnavailable} {
			w := httptest.NewRecorder()
			stale.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if w.Code != want {
				t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
			}
		}
	})
}

func TestStaleDiscovery_IgnoresMoreSlashesAroundAPath(t *testing.T) {
	proxy, client := serveDiscovery(t)
	proxy.Inject(nil, faultproxy.StaleDiscovery())
	for path, want := range map[string]string{"//apis": legacyGroups, "//api": "/api", "///apis/": legacyGroups, "/apis//": legacyGroups} {
		if got := fetch(t, client, proxy.URL()+path); got.code != http.StatusOK || got.body != want {
			t.Errorf("%s: %d %q, want %q", path, got.code, got.body, want)
		}
	}
}

// Faults that were injected before are nearer to the client: they do not change what is kept.
func TestStaleDiscovery_IgnoresEarlierFaults(t *testing.T) {
	proxy, client := serveDiscovery(t)
	remove := proxy.Inject(nil, faultproxy.Fail(500))
	proxy.Inject(nil, faultproxy.StaleDiscovery())
	remove()
	if got := fetch(t, client, proxy.URL()+"/apis"); got.body != legacyGroups {
		t.Errorf("got %d %q", got.code, got.body)
	}
}
