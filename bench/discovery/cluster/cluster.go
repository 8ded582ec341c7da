package cluster

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Size says how much a cluster has.
type Size struct {
	// CRDs is how many there are at the beginning.
	CRDs int `json:"crds"`
	// SchemaBytes is about how large the schemas of one are, together.
	SchemaBytes int `json:"schemaBytes"`
	// Lag is how long after a CRD is established the documents tell of it.
	Lag time.Duration `json:"lagNanos"`
}

// Cluster is the server. It is a handler.
type Cluster struct {
	size     Size
	builtIn  []Type
	crds     *collection
	apis     *collection
	current  atomic.Pointer[documents]
	counting counting
	mux      *http.ServeMux

	// mu guards the fields below; it makes changes come one after the other.
	mu      sync.Mutex
	present []Definition
	change  int // the number of the last one
}

// New returns a cluster of that size.
func New(size Size) (*Cluster, error) {
	types, err := BuiltIn()
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		size: size, builtIn: types, present: Definitions(size.CRDs),
		crds: newCollection("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
		apis: newCollection("apiregistration.k8s.io/v1", "APIService"),
	}
	if err := c.fill(); err != nil {
		return nil, err
	}
	documents, err := newDocuments(c.types())
	if err != nil {
		return nil, err
	}
	c.current.Store(documents)
	c.route()
	return c, nil
}

// fill creates the objects that there are from the beginning.
func (c *Cluster) fill() error {
	for _, t := range c.builtIn {
		if err := c.putAPIService(t.GVR.GroupVersion(), false); err != nil {
			return err
		}
	}
	for _, d := range c.present {
		for _, t := range d.Types {
			if err := c.putAPIService(t.GVR.GroupVersion(), true); err != nil {
				return err
			}
		}
		if _, err := c.putCRD(d, true); err != nil {
			return err
		}
	}
	c.crds.forget()
	c.apis.forget()
	return nil
}

// types returns what is served. The caller holds mu, or is New.
func (c *Cluster) types() []Type {
	types := append([]Type(nil), c.builtIn...)
	for _, d := range c.present {
		types = append(types, d.Types...)
	}
	return types
}

func (c *Cluster) putAPIService(gv schema.GroupVersion, custom bool) error {
	_, err := c.apis.put(apiServiceName(gv), func(version string) map[string]any { return apiService(gv, custom, version) })
	return err
}

func (c *Cluster) putCRD(d Definition, established bool) (time.Time, error) {
	return c.crds.put(d.Name(), func(version string) map[string]any { return d.object(c.size.SchemaBytes, established, version) })
}

// route makes the paths.
func (c *Cluster) route() {
	served := http.NewServeMux()
	served.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { c.current.Load().serve(w, r) })
	served.HandleFunc("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions", c.crds.serve)
	served.HandleFunc("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}", c.crds.serveOne)
	served.HandleFunc("GET /apis/apiregistration.k8s.io/v1/apiservices", c.apis.serve)
	c.counting.next = served
	c.mux = http.NewServeMux()
	c.mux.Handle("/", &c.counting)
	c.mux.HandleFunc("GET "+countsPath, func(w http.ResponseWriter, _ *http.Request) { reply(w, c.counting.counts()) })
	c.mux.HandleFunc("PUT "+newcomersPath+"{number}", serveChange(c.create))
	c.mux.HandleFunc("DELETE "+newcomersPath+"{number}", serveChange(c.remove))
}

// ServeHTTP answers as an API server, and makes the changes that an [Admin] wants.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }
