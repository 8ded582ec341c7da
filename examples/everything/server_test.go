package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// server is a small API server: it has CRDs that can be watched, and objects that can be listed.
type server struct {
	*httptest.Server
	ended chan struct{}

	watched chan struct{} // gets a value for each watch of CRDs

	mu      sync.Mutex
	version int
	crds    map[string]map[string]any
	objects map[string][]any // by plural
	failing map[string]bool  // plurals whose requests fail
	watches []chan []byte
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{crds: map[string]map[string]any{}, objects: map[string][]any{}, failing: map[string]bool{}, version: 1, ended: make(chan struct{}), watched: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		close(s.ended)
		s.Close()
	})
	return s
}

// define creates a type with objects of these names.
func (s *server) define(plural, uid string, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	for _, name := range names {
		s.objects[plural] = append(s.objects[plural], map[string]any{
			"apiVersion": "sea.example.com/v1", "kind": kind,
			"metadata": map[string]any{"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1"},
		})
	}
	accepted := map[string]any{"plural": plural, "kind": kind}
	s.crds[plural] = map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".sea.example.com", "uid": uid},
		"spec": map[string]any{
			"group": "sea.example.com", "scope": "Namespaced", "names": accepted, "versions": []any{map[string]any{"name": "v1", "served": true}},
		},
		"status": map[string]any{"acceptedNames": accepted, "conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
	}
	s.notifyLocked("ADDED", s.crds[plural])
}

// metadataOf returns the metadata of a CRD as a PartialObjectMetadata.
func metadataOf(crd map[string]any) map[string]any {
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": crd["metadata"]}
}

// group returns the group of the CRDs for the discovery document, or nil without CRDs.
func (s *server) group() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var resources []any
	for _, plural := range slices.Sorted(maps.Keys(s.crds)) {
		kind := s.crds[plural]["status"].(map[string]any)["acceptedNames"].(map[string]any)["kind"]
		resources = append(resources, map[string]any{
			"resource": plural, "scope": "Namespaced", "verbs": []string{"get", "list", "watch", "create", "update", "delete"},
			"responseKind": map[string]any{"group": "sea.example.com", "version": "v1", "kind": kind},
		})
	}
	if resources == nil {
		return nil
	}
	return []any{map[string]any{"metadata": map[string]any{"name": "sea.example.com"}, "versions": []any{
		map[string]any{"version": "v1", "freshness": "Current", "resources": resources},
	}}}
}

// undefine deletes a type and its objects.
func (s *server) undefine(plural string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	crd := s.crds[plural]
	delete(s.crds, plural)
	delete(s.objects, plural)
	s.notifyLocked("DELETED", crd)
}

// failRequests makes requests for the objects of a type fail.
func (s *server) failRequests(plural string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing[plural] = true
}

func (s *server) notifyLocked(kind string, crd map[string]any) {
	s.version++
	crd["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(s.version)
	event, err := json.Marshal(map[string]any{"type": kind, "object": metadataOf(crd)})
	if err != nil {
		panic(err)
	}
	for _, events := range s.watches {
		events <- append(event, '\n')
	}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plural := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	watch := r.URL.Query().Get("watch") != ""
	s.mu.Lock()
	failing, crd := s.failing[plural], s.crds[plural]
	s.mu.Unlock()
	switch {
	case r.URL.Path == "/api", r.URL.Path == "/apis":
		s.documents(w, r.URL.Path)
	case r.URL.Path == crdPath && failing:
		refuse(w, http.StatusForbidden, "Forbidden")
	case r.URL.Path == crdPath && watch:
		s.watch(w, r, true)
	case r.URL.Path == crdPath:
		s.list(w, "PartialObjectMetadataList", func(add func(item any)) {
			for _, crd := range s.crds {
				add(metadataOf(crd))
			}
		})
	case crd == nil:
		refuse(w, http.StatusNotFound, "NotFound")
	case failing:
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable")
	case r.URL.Query().Get("sendInitialEvents") != "":
		refuse(w, http.StatusBadRequest, "BadRequest") // a list follows
	case watch:
		s.watch(w, r, false)
	default:
		s.list(w, strings.ToUpper(plural[:1])+plural[1:]+"List", func(add func(item any)) {
			for _, object := range s.objects[plural] {
				add(object)
			}
		})
	}
}

func (s *server) documents(w http.ResponseWriter, path string) {
	items := []any{}
	if path == "/apis" {
		items = append(items, map[string]any{"metadata": map[string]any{"name": "none.example.com"}, "versions": []any{map[string]any{
			"version": "v1", "resources": []any{map[string]any{
				"resource": "nones", "scope": "Cluster", "verbs": []string{"get"}, "responseKind": map[string]any{"kind": "None"},
			}},
		}}})
		items = append(items, s.group()...)
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	send(w, map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
}

// list sends a list with the items that all adds.
func (s *server) list(w http.ResponseWriter, kind string, all func(add func(item any))) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	all(func(item any) { items = append(items, item) })
	w.Header().Set("Content-Type", "application/json")
	apiVersion := "v1"
	if kind == "PartialObjectMetadataList" {
		apiVersion = "meta.k8s.io/v1"
	}
	send(w, map[string]any{
		"kind": kind, "apiVersion": apiVersion, "metadata": map[string]any{"resourceVersion": fmt.Sprint(s.version)}, "items": items,
	})
}

// watch sends later events of CRDs, or no events, until the request ends. A test that waits for the
// watch misses no event.
func (s *server) watch(w http.ResponseWriter, r *http.Request, ofCRDs bool) {
	events := make(chan []byte, 100)
	s.mu.Lock()
	if ofCRDs {
		s.watches = append(s.watches, events)
		s.watched <- struct{}{}
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for {
		select {
		case event := <-events:
			_, _ = w.Write(event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	send(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code})
}

func send(w http.ResponseWriter, body any) {
	content, err := json.Marshal(body)
	if err == nil {
		_, _ = w.Write(append(content, '\n'))
	}
}
