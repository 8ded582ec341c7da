// Package stub is an API server that answers from JSON that was encoded beforehand, so that a
// benchmark of clients spends no time waiting for a server. It serves what discovery and
// informers ask for: the aggregated documents with ETag and the legacy ones,
// CustomResourceDefinitions, APIServices and objects, with list, pages, metadata only, watch
// and initial events.
//
// The built-in types are those of a Kubernetes server of 2026. CRDs are generated from their
// numbers: their names resemble real ones, and their schemas are random, so that none is a copy
// of another. A watch begins at the present version, or is answered with 410.
//
// It has no selectors, single namespaces, writes, permissions, compression or TLS. Changes are
// made by requests of its own; see [Client].
package stub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/process"
)

// Role is the role of a process that is a [Server].
const Role = "stub"

// The paths of a [Client].
const (
	eventsPath    = "/bench/events/"
	newcomersPath = "/bench/newcomers/"
)

// Config says what a server has.
type Config struct {
	// Kind is the kind of the objects. A server with a kind has no discovery.
	Kind string `json:"kind,omitempty"`
	// Objects is how many objects there are: of Kind, or of each CRD.
	Objects int `json:"objects,omitempty"`
	// CRDs is how many CRDs there are, and SchemaBytes the approximate size of the schemas of
	// one.
	CRDs        int `json:"crds,omitempty"`
	SchemaBytes int `json:"schemaBytes,omitempty"`
}

// Server is the handler.
type Server struct {
	http.ServeMux

	config    Config
	documents atomic.Pointer[documents]

	// change is full while a change is made. It guards the fields below, whose collections are
	// safe to read.
	change     chan struct{}
	crds, apis *collection
	types      []Type // all that are served
	changes    int    // of objects, so far
}

// New returns a server.
func New(ctx context.Context, config Config) (*Server, error) {
	s := &Server{config: config, change: make(chan struct{}, 1)}
	if config.Kind != "" {
		return s, s.fillObjects(ctx)
	}
	return s, s.fillDiscovery(ctx)
}

// handleChange serves a path that ends with a number. The answer is when the change was made.
func (s *Server) handleChange(path string, change func(ctx context.Context, n int) (time.Time, error)) {
	s.HandleFunc(path+"{number}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("number"))
		if err != nil || n < 0 {
			http.Error(w, "invalid number", http.StatusBadRequest)
			return
		}
		s.change <- struct{}{}
		at, err := change(r.Context(), n)
		<-s.change
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		_ = json.NewEncoder(w).Encode(at) // it fails if the client has gone
	})
}

// fillObjects makes the server one of objects of one kind.
func (s *Server) fillObjects(ctx context.Context) error {
	kind, err := objects.Named(s.config.Kind)
	if err != nil {
		return err
	}
	corpus, err := objects.Encode(ctx, kind, s.config.Objects)
	if err != nil {
		return err
	}
	items := make([]item, len(corpus))
	for i, text := range corpus {
		items[i].text[whole] = text
	}
	all, counter := newCollection(kind.GVK, items), kind.Counter[len(kind.Counter)-1]
	s.HandleFunc("GET "+pathOf(kind.GVR), all.serve)
	s.handleChange("POST "+eventsPath, func(ctx context.Context, n int) (time.Time, error) {
		if err := all.waitForWatch(ctx); err != nil {
			return time.Time{}, err
		}
		for range n {
			if err := all.update(ctx, s.changes%len(items), counter); err != nil {
				return time.Time{}, err
			}
			s.changes++
		}
		return time.Now(), nil
	})
	return nil
}

// fillDiscovery makes the server one of built-in types and CRDs.
func (s *Server) fillDiscovery(ctx context.Context) (err error) {
	if s.types, err = BuiltIn(); err != nil {
		return err
	}
	s.crds, s.apis = newCollection(crdKind, nil), newCollection(apiServiceKind, nil)
	for _, t := range s.types {
		if _, err := s.putAPIService(ctx, t.GVR.GroupVersion(), false); err != nil {
			return err
		}
	}
	for _, d := range Definitions(s.config.CRDs) {
		if _, err := s.add(ctx, d, nil); err != nil {
			return err
		}
		if err := s.serveObjects(d.Types[0], s.config.Objects); err != nil {
			return err
		}
	}
	first, err := newDocuments(s.types)
	if err != nil {
		return err
	}
	s.documents.Store(first)
	s.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { s.documents.Load().serve(w, r) })
	s.HandleFunc("GET "+pathOf(CRDs), s.crds.serve)
	s.HandleFunc("GET "+pathOf(CRDs)+"/{name}", s.crds.serveOne)
	s.HandleFunc("GET "+pathOf(APIServices), s.apis.serve)
	s.handleChange("PUT "+newcomersPath, s.create)
	s.handleChange("DELETE "+newcomersPath, s.remove)
	return nil
}

// serveObjects serves n objects of a type, if n is not 0.
func (s *Server) serveObjects(of Type, n int) (err error) {
	if n == 0 {
		return nil
	}
	items := make([]item, n)
	for i := range items {
		obj := of.Object(i)
		obj.SetResourceVersion(objects.FormatVersion(objects.Version(i)))
		if items[i], err = newItem(obj.GetName(), obj.Object); err != nil {
			return err
		}
	}
	s.HandleFunc("GET "+pathOf(of.GVR), newCollection(of.GVK, items).serve)
	return nil
}

func pathOf(gvr schema.GroupVersionResource) string {
	return "/apis/" + gvr.Group + "/" + gvr.Version + "/" + gvr.Resource
}

func (s *Server) putAPIService(ctx context.Context, gv schema.GroupVersion, custom bool) (time.Time, error) {
	return s.apis.put(ctx, apiServiceName(gv), func(version string) map[string]any { return apiService(gv, custom, version) })
}

// add adds an established CRD, then its documents, and then its APIServices. It returns when it
// was established.
func (s *Server) add(ctx context.Context, d Definition, following *documents) (at time.Time, err error) {
	at, err = s.crds.put(ctx, d.Name(), func(version string) map[string]any { return d.object(s.config.SchemaBytes, true, version) })
	s.documents.Store(following)
	for _, t := range d.Types {
		if err == nil {
			_, err = s.putAPIService(ctx, t.GVR.GroupVersion(), true)
		}
	}
	s.types = append(s.types, d.Types...)
	return at, err
}

// create creates the i-th newcomer, and establishes it.
func (s *Server) create(ctx context.Context, i int) (at time.Time, err error) {
	d := Newcomer(i)
	if slices.ContainsFunc(s.types, d.has) {
		return at, fmt.Errorf("%s exists already", d.Name())
	}
	following, err := newDocuments(append(slices.Clone(s.types), d.Types...))
	if err != nil {
		return at, err
	}
	if _, err := s.crds.put(ctx, d.Name(), func(version string) map[string]any { return d.object(s.config.SchemaBytes, false, version) }); err != nil {
		return at, err
	}
	return s.add(ctx, d, following)
}

// remove deletes the i-th newcomer.
func (s *Server) remove(ctx context.Context, i int) (at time.Time, err error) {
	d := Newcomer(i)
	if !slices.ContainsFunc(s.types, d.has) {
		return at, fmt.Errorf("there is no %s", d.Name())
	}
	s.types = slices.DeleteFunc(s.types, d.has)
	following, err := newDocuments(s.types)
	if err != nil {
		return at, err
	}
	s.documents.Store(following)
	at, err = s.crds.remove(ctx, d.Name(), func(version string) map[string]any { return d.object(s.config.SchemaBytes, true, version) })
	for _, t := range d.Types {
		if gv := t.GVR.GroupVersion(); err == nil {
			_, err = s.apis.remove(ctx, apiServiceName(gv), func(version string) map[string]any { return apiService(gv, true, version) })
		}
	}
	return at, err
}

// RunProcess makes this process the server that its parent has asked for.
func RunProcess(ctx context.Context) error {
	var config Config
	ctx, err := process.Request(ctx, &config)
	if err != nil {
		return err
	}
	server, err := New(ctx, config)
	if err != nil {
		return err
	}
	return process.Serve(ctx, server)
}
