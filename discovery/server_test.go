package discovery_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
)

// format is how a server answers discovery.
type format string

const (
	aggregated format = "aggregated" // two documents tell everything, since Kubernetes 1.26
	legacy     format = "legacy"     // one document a group version
)

var formats = []format{aggregated, legacy}

// group is what a server says of an API group, in its order of versions.
type group struct {
	name      string
	preferred string // empty: the first version
	versions  []version
}

type version struct {
	name      string
	stale     bool // the server that knows its resources does not answer
	resources []metav1.APIResource
}

// apiServer is an API server on a real socket that serves discovery only.
type apiServer struct {
	*httptest.Server
	format format

	mu        sync.Mutex
	groups    []group
	below     map[string]http.Handler // what is served below a path
	requests  []string                // the paths, in order
	overrides map[string]http.HandlerFunc
	behind    bool             // documents do not tell of CRDs
	tap       func(status int) // hears of each discovery document sent
}

// newServer returns a server of groups that ends with the test.
func newServer(tb testing.TB, format format, groups ...group) *apiServer {
	tb.Helper()
	s := &apiServer{format: format, groups: groups, overrides: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(s)
	tb.Cleanup(s.Close) // ends the connections of the default transport, too
	return s
}

// answer makes h answer path from now on; "*" is every path.
func (s *apiServer) answer(path string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overrides[path] = h
}

// paths returns the paths of the requests so far and forgets them.
func (s *apiServer) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := s.requests
	s.requests = nil
	return paths
}

// documents returns how often discovery documents were asked for so far, and forgets it.
func (s *apiServer) documents() int {
	return len(slices.DeleteFunc(s.paths(), func(path string) bool {
		return strings.HasPrefix(path, crdPath) || strings.HasPrefix(path, apiServicePath)
	}))
}

// documentsSoFar is documents without forgetting.
func (s *apiServer) documentsSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, path := range s.requests {
		if !strings.HasPrefix(path, crdPath) && !strings.HasPrefix(path, apiServicePath) {
			count++
		}
	}
	return count
}

// resolver returns a resolver of s that has its own client.
func (s *apiServer) resolver(tb testing.TB, opts ...discovery.Option) *discovery.Resolver {
	tb.Helper()
	r, err := discovery.NewForConfig(&rest.Config{Host: s.URL}, opts...)
	if err != nil {
		tb.Fatalf("NewForConfig: %v", err)
	}
	return r
}

// answerTo returns what answers a request for path, or nil, and the groups that are served.
func (s *apiServer) answerTo(path string) (http.HandlerFunc, []group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, path)
	override := s.overrides[path]
	if override == nil {
		override = s.overrides["*"]
	}
	for root, handler := range s.below {
		if override == nil && strings.HasPrefix(path, root) {
			override = handler.ServeHTTP
		}
	}
	groups := slices.Clone(s.groups)
	if definitions, ok := s.below[crdPath].(*collection); ok && definitions != nil && !s.behind {
		for _, g := range definitions.groups() {
			if !slices.ContainsFunc(groups, func(other group) bool { return other.name == g.name }) {
				groups = append(groups, g)
			}
		}
	}
	return override, groups
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	override, groups := s.answerTo(r.URL.Path)
	switch path := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case override != nil:
		override(w, r)
	case r.URL.Path == "/api", r.URL.Path == "/apis":
		s.serveRoot(w, r, groups)
	case len(path) == 2 && path[0] == "api":
		serveVersion(w, groups, "", path[1])
	case len(path) == 3 && path[0] == "apis":
		serveVersion(w, groups, path[1], path[2])
	default:
		http.NotFound(w, r)
	}
}

// serveRoot answers for the core group at /api, and for all others at /apis.
func (s *apiServer) serveRoot(w http.ResponseWriter, r *http.Request, all []group) {
	const v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	var groups []group
	for _, g := range all {
		if (g.name == "") == (r.URL.Path == "/api") {
			groups = append(groups, g)
		}
	}
	switch {
	case r.URL.Path == "/api" && len(groups) == 0:
		http.NotFound(w, r)
	case s.format == aggregated && strings.Contains(r.Header.Get("Accept"), v2):
		doc := aggregatedDoc(groups)
		etag := fmt.Sprintf(`"%x"`, sha256.Sum256(fmt.Append(nil, doc)))
		w.Header().Set("ETag", etag)
		status := http.StatusOK
		if r.Header.Get("If-None-Match") == etag {
			status = http.StatusNotModified
		}
		s.mu.Lock()
		if s.tap != nil {
			s.tap(status)
		}
		s.mu.Unlock()
		if status == http.StatusNotModified {
			w.WriteHeader(status)
			return
		}
		writeJSON(w, v2, doc)
	case r.URL.Path == "/api":
		writeJSON(w, "application/json", coreDoc(groups[0]))
	default:
		writeJSON(w, "application/json", groupsDoc(groups))
	}
}

func serveVersion(w http.ResponseWriter, groups []group, groupName, versionName string) {
	for _, g := range groups {
		for _, v := range g.versions {
			if g.name != groupName || v.name != versionName {
				continue
			}
			if v.stale {
				http.Error(w, "service unavailable", http.StatusServiceUnavailable)
				return
			}
			writeJSON(w, "application/json", versionDoc(g, v))
			return
		}
	}
	http.Error(w, "404 page not found", http.StatusNotFound)
}

func coreDoc(core group) metav1.APIVersions {
	doc := metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}
	for _, v := range core.versions {
		doc.Versions = append(doc.Versions, v.name)
	}
	return doc
}

func groupsDoc(groups []group) metav1.APIGroupList {
	doc := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range groups {
		out := metav1.APIGroup{Name: g.name, Versions: []metav1.GroupVersionForDiscovery{}}
		for _, v := range g.versions {
			entry := metav1.GroupVersionForDiscovery{GroupVersion: g.name + "/" + v.name, Version: v.name}
			if v.name == g.preferredVersion() {
				out.PreferredVersion = entry
			}
			out.Versions = append(out.Versions, entry)
		}
		doc.Groups = append(doc.Groups, out)
	}
	return doc
}

func versionDoc(g group, v version) metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: strings.TrimPrefix(g.name+"/"+v.name, "/"),
		APIResources: v.resources,
	}
}

// aggregatedDoc is an APIGroupDiscoveryList. Its order of versions says which one
// is preferred.
func aggregatedDoc(groups []group) map[string]any {
	items := make([]any, 0, len(groups))
	for _, g := range groups {
		vs := slices.Clone(g.versions)
		slices.SortStableFunc(vs, func(a, b version) int { return g.rank(a) - g.rank(b) })
		versions := make([]any, 0, len(vs))
		for _, v := range vs {
			versions = append(versions, aggregatedVersion(g, v))
		}
		items = append(items, map[string]any{"metadata": map[string]any{"name": g.name}, "versions": versions})
	}
	return map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}
}

func aggregatedVersion(g group, v version) map[string]any {
	freshness := "Current"
	if v.stale {
		freshness = "Stale"
	}
	var resources []any
	for _, r := range v.resources {
		if v.stale || strings.Contains(r.Name, "/") {
			continue
		}
		scope := "Cluster"
		if r.Namespaced {
			scope = "Namespaced"
		}
		var subresources []any
		for _, sub := range v.resources {
			if name, found := strings.CutPrefix(sub.Name, r.Name+"/"); found {
				subresources = append(subresources, map[string]any{"subresource": name, "verbs": sub.Verbs})
			}
		}
		resources = append(resources, map[string]any{
			"resource":         r.Name,
			"singularResource": r.SingularName,
			"responseKind":     map[string]any{"group": cmp.Or(r.Group, g.name), "version": cmp.Or(r.Version, v.name), "kind": r.Kind},
			"scope":            scope,
			"verbs":            r.Verbs,
			"shortNames":       r.ShortNames,
			"categories":       r.Categories,
			"subresources":     subresources,
		})
	}
	return map[string]any{"version": v.name, "freshness": freshness, "resources": resources}
}

func (g group) preferredVersion() string {
	if g.preferred == "" && len(g.versions) > 0 {
		return g.versions[0].name
	}
	return g.preferred
}

// rank is 0 for the preferred version and 1 for others.
func (g group) rank(v version) int {
	if v.name == g.preferredVersion() {
		return 0
	}
	return 1
}

func writeJSON(w http.ResponseWriter, contentType string, doc any) {
	body, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprintf("discovery document: %v", err))
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body)
}
