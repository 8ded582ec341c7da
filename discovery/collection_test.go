package discovery_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// The collections that a resolver watches.
const (
	crdPath        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	apiServicePath = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// object is what a collection has, as it goes over the wire.
type object map[string]any

func (o object) name() string { return o["metadata"].(map[string]any)["name"].(string) }

// collection is a list of objects that can be watched.
type collection struct {
	mu      sync.Mutex
	version int
	objects map[string]object
	watches map[chan string]bool // of frames
	history []string             // the frame of each version
}

func newCollection(objects ...object) *collection {
	c := &collection{objects: map[string]object{}, watches: map[chan string]bool{}}
	for _, o := range objects {
		c.put(o)
	}
	return c
}

// put adds o or replaces it.
func (c *collection) put(o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := "MODIFIED"
	meta, generation := o["metadata"].(map[string]any), 1
	if old := c.objects[o.name()]; old == nil {
		kind = "ADDED"
	} else {
		generation, _ = old["metadata"].(map[string]any)["generation"].(int)
		if !reflect.DeepEqual(old["spec"], o["spec"]) || old["metadata"].(map[string]any)["deletionTimestamp"] != meta["deletionTimestamp"] {
			generation++
		}
	}
	meta["generation"] = generation
	c.objects[o.name()] = o
	c.tell(kind, o)
}

// remove deletes the object of that name.
func (c *collection) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[name]
	delete(c.objects, name)
	c.tell("DELETED", o)
}

// forget is remove without telling watches, as if it happened while they were cut.
func (c *collection) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, name)
	c.version++
}

// cut ends all watches; what they go on from is too old.
func (c *collection) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for frames := range c.watches {
		frames <- `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`
	}
}

// tell sends an event. Caller holds c.mu.
func (c *collection) tell(kind string, o object) {
	c.version++
	o["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(c.version)
	frame, err := json.Marshal(map[string]any{"type": kind, "object": partial(o)})
	if err != nil {
		panic(err)
	}
	for len(c.history) < c.version {
		c.history = append(c.history, "")
	}
	c.history = append(c.history, string(frame))
	for frames := range c.watches {
		frames <- string(frame)
	}
}

// partial returns the metadata of o, as an API server does for a client that asks for that.
func partial(o object) object {
	return object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
}

// groups returns what a server's documents tell of the CRDs in c.
func (c *collection) groups() []group {
	c.mu.Lock()
	defer c.mu.Unlock()
	var groups []group
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		if d, ok := c.objects[name]["definition"].(definition); ok && d.conditions["Established"] == "True" {
			groups = withDefinition(groups, d)
		}
	}
	return groups
}

// withDefinition returns groups with what d defines.
func withDefinition(groups []group, d definition) []group {
	at := slices.IndexFunc(groups, func(g group) bool { return g.name == d.group })
	if at < 0 {
		at = len(groups)
		groups = append(groups, group{name: d.group})
	}
	g := &groups[at]
	verbs := crdVerbs
	for _, name := range d.versions {
		if !d.served[name] {
			continue
		}
		i := slices.IndexFunc(g.versions, func(v version) bool { return v.name == name })
		if i < 0 {
			i = len(g.versions)
			g.versions = append(g.versions, version{name: name})
		}
		g.versions[i].resources = append(g.versions[i].resources,
			metav1.APIResource{
				Name: d.plural, SingularName: strings.ToLower(d.kind), Kind: d.kind, Namespaced: d.scope == "Namespaced", Verbs: verbs,
				ShortNames: append([]string{"x" + d.plural[:2]}, d.moreNames...), Categories: []string{"testing"},
			},
			metav1.APIResource{Name: d.plural + "/status", Kind: d.kind, Namespaced: d.scope == "Namespaced", Verbs: all})
	}
	slices.SortStableFunc(g.versions, func(a, b version) int { return -apiversion.CompareKubeAwareVersionStrings(a.name, b.name) })
	return groups
}

// open returns how many watches are open.
func (c *collection) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.watches)
}

func (c *collection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") == "" {
		if name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; strings.Contains(name, ".") {
			c.serveOne(w, r, name)
			return
		}
		kind := "CustomResourceDefinitionList"
		if strings.HasPrefix(r.URL.Path, apiServicePath) {
			kind = "APIServiceList"
		}
		c.serveList(w, kind, strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"))
		return
	}
	frames := make(chan string, 1000)
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	c.mu.Lock()
	c.watches[frames] = true
	for _, frame := range c.history[min(since+1, len(c.history)):] {
		if frame != "" {
			frames <- frame
		}
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watches, frames)
	}()
	w.(http.Flusher).Flush()
	for {
		select {
		case frame := <-frames:
			_, _ = fmt.Fprintln(w, frame)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (c *collection) serveOne(w http.ResponseWriter, r *http.Request, name string) {
	c.mu.Lock()
	o := c.objects[name]
	c.mu.Unlock()
	if o == nil {
		refuse(http.StatusNotFound, "NotFound")(w, r)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		o = partial(o)
	}
	writeJSON(w, "application/json", o)
}

func (c *collection) serveList(w http.ResponseWriter, kind string, metadataOnly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	items := []object{}
	for _, o := range c.objects {
		if metadataOnly {
			o = partial(o)
		}
		items = append(items, o)
	}
	apiVersion := "v1"
	if metadataOnly {
		kind, apiVersion = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	writeJSON(w, "application/json", map[string]any{
		"kind": kind, "apiVersion": apiVersion,
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(c.version)}, "items": items,
	})
}

// definition is a CustomResourceDefinition to be changed by its methods.
type definition struct {
	group, plural, kind, scope string
	uid                        types.UID
	labels                     map[string]string
	served                     map[string]bool // by version; listed in the order of versions
	versions                   []string
	strategy                   string
	conditions                 map[string]string // status by type
	message                    string
	terminating                bool
	noise                      string // in places that do not matter
	moreNames                  []string
}

// define returns an established CRD of gadgets, or whatever the name says, in v1.
func define(name string, uid types.UID) definition {
	plural, group, _ := strings.Cut(name, ".")
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	return definition{
		group: group, plural: plural, kind: kind, scope: "Namespaced", uid: uid,
		versions: []string{"v1"}, served: map[string]bool{"v1": true}, strategy: "None",
		conditions: map[string]string{"NamesAccepted": "True", "Established": "True"},
	}
}

// copied returns d as it is now.
func (d definition) copied() definition {
	d.served, d.conditions, d.versions = maps.Clone(d.served), maps.Clone(d.conditions), slices.Clone(d.versions)
	return d
}

func (d definition) object() object {
	names := map[string]any{
		"plural": d.plural, "singular": strings.ToLower(d.kind), "kind": d.kind, "listKind": d.kind + "List",
		"shortNames": append([]string{"x" + d.plural[:2]}, d.moreNames...), "categories": []string{"testing"},
	}
	var versions []any
	for _, v := range d.versions {
		versions = append(versions, map[string]any{
			"name": v, "served": d.served[v], "storage": v == d.versions[0],
			"subresources": map[string]any{"status": map[string]any{}},
			"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": d.noise}},
		})
	}
	var conditions []any
	for _, kind := range []string{"NamesAccepted", "Established"} {
		if status := d.conditions[kind]; status != "" {
			conditions = append(conditions, map[string]any{
				"type": kind, "status": status, "reason": "Because", "message": d.message, "lastTransitionTime": d.noise,
			})
		}
	}
	meta := map[string]any{"name": d.plural + "." + d.group, "uid": d.uid, "labels": d.labels, "annotations": map[string]any{"noise": d.noise}}
	if d.terminating {
		meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	return object{
		"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": meta, "definition": d.copied(),
		"spec": map[string]any{
			"group": d.group, "scope": d.scope, "names": names, "versions": versions,
			"conversion": map[string]any{"strategy": d.strategy, "webhook": map[string]any{"caBundle": d.noise}},
		},
		"status": map[string]any{"conditions": conditions, "acceptedNames": names, "storedVersions": []string{d.noise}},
	}
}

// apiServiceOf is the APIService of a group version. A local one has no service.
func apiServiceOf(groupName, versionName, service, available string, labels map[string]string) object {
	spec := map[string]any{"group": groupName, "version": versionName}
	if service != "" {
		spec["service"] = map[string]any{"namespace": "kube-system", "name": service}
	}
	return object{
		"kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
		"metadata": map[string]any{"name": versionName + "." + groupName, "uid": "u-" + groupName, "labels": labels},
		"spec":     spec,
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": available}}},
	}
}

// collections gives s the objects that a resolver watches.
func (s *apiServer) collections(tb testing.TB, definitions, apis *collection) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.below = map[string]http.Handler{}
	if definitions != nil {
		s.below[crdPath] = definitions
	}
	if apis != nil {
		s.below[apiServicePath] = apis
	}
}

// serve makes the server serve other groups from now on.
func (s *apiServer) serve(groups ...group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = groups
}
