package dynamicinformer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// crdCluster is a cluster whose types have CustomResourceDefinitions. It is the transport of a
// resolver's HTTP client, so that no sockets are used.
type crdCluster struct {
	*fakecluster.Cluster

	mu      sync.Mutex
	version int
	uid     int
	crds    map[string]map[string]any
	frames  []string // the event of each version, beginning with the first
	news    broadcast.Broadcaster
	down    bool
	hidden  bool // requests for CRDs are forbidden
}

func newCRDCluster() *crdCluster {
	return &crdCluster{Cluster: fakecluster.New(), crds: map[string]map[string]any{}}
}

// factory returns a factory on w with discovery. It is not started.
func (w *crdCluster) factory(t *testing.T, opts ...dynamicinformer.Option) *dynamicinformer.Factory {
	t.Helper()
	return newFactory(t, w.Cluster, append([]dynamicinformer.Option{dynamicinformer.WithDiscovery(w.resolver(t))}, opts...)...)
}

// resolver returns a resolver that asks w.
func (w *crdCluster) resolver(t *testing.T) *discovery.Resolver {
	t.Helper()
	resolver, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://cluster.invalid"}, &http.Client{Transport: w})
	if err != nil {
		t.Fatal(err)
	}
	return resolver
}

// kindOf returns the GVR of a kind of the cluster.
func kindOf(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "things.example.com", Version: "v1", Resource: name}
}

// define creates or replaces the CRD of a type, with a new UID. Edits change the CRD.
func (w *crdCluster) define(name string, edits ...func(crd map[string]any)) {
	gvr := kindOf(name)
	w.Serve(fakecluster.Type{GVR: gvr, Kind: kindName(name), Namespaced: true})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replaceLocked(name, edits...)
}

// replaceLocked is define without its effect on objects.
func (w *crdCluster) replaceLocked(name string, edits ...func(crd map[string]any)) {
	gvr := kindOf(name)
	w.uid++
	names := map[string]any{"plural": name, "singular": "one" + name, "kind": kindName(name), "categories": []string{"all"}}
	crd := map[string]any{
		"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
		"metadata": map[string]any{"name": name + "." + gvr.Group, "uid": fmt.Sprintf("%s-%d", name, w.uid), "labels": map[string]string{}},
		"spec": map[string]any{
			"group": gvr.Group, "scope": "Namespaced", "names": names,
			"versions": []any{map[string]any{"name": "v1", "served": true}},
		},
		"status": map[string]any{
			"acceptedNames": names,
			"conditions":    []any{map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"}},
		},
	}
	for _, edit := range edits {
		edit(crd)
	}
	if old := w.crds[name]; old != nil {
		w.notifyLocked("DELETED", old)
	}
	w.crds[name] = crd
	w.notifyLocked("ADDED", crd)
}

func kindName(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// change edits the CRD of a type.
func (w *crdCluster) change(name string, edit func(crd map[string]any)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changeLocked(name, edit)
}

func (w *crdCluster) changeLocked(name string, edit func(crd map[string]any)) {
	content, err := json.Marshal(w.crds[name])
	if err != nil {
		panic(err)
	}
	crd := map[string]any{} // a copy: the previous version is in frames
	if err := json.Unmarshal(content, &crd); err != nil {
		panic(err)
	}
	edit(crd)
	w.crds[name] = crd
	w.notifyLocked("MODIFIED", crd)
}

// label sets the label team of a CRD.
func label(team string) func(crd map[string]any) {
	return func(crd map[string]any) {
		crd["metadata"].(map[string]any)["labels"] = map[string]string{"team": team}
	}
}

func categories(names ...string) func(crd map[string]any) {
	return func(crd map[string]any) {
		for _, part := range []any{crd["spec"].(map[string]any)["names"], crd["status"].(map[string]any)["acceptedNames"]} {
			part.(map[string]any)["categories"] = names
		}
	}
}

func versions(served map[string]bool) func(crd map[string]any) {
	return func(crd map[string]any) {
		var all []any
		for name, is := range served {
			all = append(all, map[string]any{"name": name, "served": is})
		}
		crd["spec"].(map[string]any)["versions"] = all
	}
}

// undefine deletes the CRD of a type and its objects. Watches of objects get no events.
func (w *crdCluster) undefine(name string) {
	w.Withdraw(kindOf(name))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notifyLocked("DELETED", w.crds[name])
	delete(w.crds, name)
}

// has returns the UID of the CRD of a type, or "".
func (w *crdCluster) has(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if crd := w.crds[name]; crd != nil {
		return crd["metadata"].(map[string]any)["uid"].(string)
	}
	return ""
}

// breakDiscovery makes all requests of discovery fail, including watches, or ends that.
func (w *crdCluster) breakDiscovery(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	w.news.Broadcast()
}

// hideCRDs makes requests for CRDs forbidden, or ends that.
func (w *crdCluster) hideCRDs(hidden bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hidden = hidden
	w.news.Broadcast()
}

func (w *crdCluster) notifyLocked(kind string, crd map[string]any) {
	w.version++
	meta := maps.Clone(crd["metadata"].(map[string]any))
	meta["resourceVersion"] = strconv.Itoa(w.version)
	meta["generation"] = w.version
	crd["metadata"] = meta
	frame, err := json.Marshal(map[string]any{"type": kind, "object": metadataOf(crd)})
	if err != nil {
		panic(err)
	}
	w.frames = append(w.frames, string(frame)+"\n")
	w.news.Broadcast()
}

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// RoundTrip implements http.RoundTripper.
func (w *crdCluster) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	path, media := req.URL.Path, "application/json"
	var body any
	switch name, one := strings.CutPrefix(path, crdsPath+"/"); {
	case w.down:
		return answerAs(req, http.StatusInternalServerError, media, map[string]any{}), nil
	case w.hidden && strings.HasPrefix(path, crdsPath):
		return answerAs(req, http.StatusForbidden, media, map[string]any{}), nil
	case path == "/api", path == "/apis":
		media += ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		items := []any{}
		if path == "/apis" { // a server always has a group
			items = append(items, map[string]any{"metadata": map[string]any{"name": "none.example.com"}, "versions": []any{map[string]any{
				"version": "v1", "freshness": "Current", "resources": []any{map[string]any{
					"resource": "nones", "scope": "Cluster", "verbs": []string{"get"}, "responseKind": map[string]any{"kind": "None"},
				}},
			}}})
			items = append(items, w.groupLocked()...)
		}
		body = map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}
	case path == crdsPath && req.URL.Query().Get("watch") != "":
		since, err := strconv.Atoi(req.URL.Query().Get("resourceVersion"))
		if err != nil {
			return nil, err
		}
		seconds, err := strconv.Atoi(req.URL.Query().Get("timeoutSeconds"))
		if err != nil {
			return nil, err
		}
		res := answerAs(req, http.StatusOK, media, nil)
		res.Body = &crdWatch{ctx: req.Context(), cluster: w, at: since, end: time.After(time.Duration(seconds) * time.Second)}
		return res, nil
	case path == crdsPath:
		items := []any{}
		for _, crd := range w.crds {
			items = append(items, metadataOf(crd))
		}
		body = map[string]any{
			"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
			"metadata": map[string]any{"resourceVersion": strconv.Itoa(w.version)}, "items": items,
		}
	case one && w.crds[strings.TrimSuffix(name, ".things.example.com")] != nil:
		body = w.crds[strings.TrimSuffix(name, ".things.example.com")]
	default:
		return answerAs(req, http.StatusNotFound, media, map[string]any{}), nil
	}
	return answerAs(req, http.StatusOK, media, body), nil
}

func answerAs(req *http.Request, code int, media string, body any) *http.Response {
	content, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: req,
		Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(bytes.NewReader(content)),
	}
}

// metadataOf returns the metadata of a CRD as a PartialObjectMetadata.
func metadataOf(crd map[string]any) map[string]any {
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": crd["metadata"]}
}

// groupLocked returns the group of the CRDs for the discovery document, if a type is served.
func (w *crdCluster) groupLocked() []any {
	resources := map[string][]any{} // by version
	for _, name := range slices.Sorted(maps.Keys(w.crds)) {
		spec := w.crds[name]["spec"].(map[string]any)
		status := w.crds[name]["status"].(map[string]any)
		names := status["acceptedNames"].(map[string]any)
		for _, v := range spec["versions"].([]any) {
			if v := v.(map[string]any); v["served"].(bool) {
				served := v["name"].(string)
				resources[served] = append(resources[served], map[string]any{
					"resource": names["plural"], "scope": spec["scope"], "singularResource": names["singular"],
					"categories": names["categories"], "shortNames": names["shortNames"],
					"verbs":        []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
					"responseKind": map[string]any{"group": spec["group"], "version": served, "kind": names["kind"]},
				})
			}
		}
	}
	var versions []any
	for _, name := range slices.SortedFunc(maps.Keys(resources), func(a, b string) int { return -version.CompareKubeAwareVersionStrings(a, b) }) {
		versions = append(versions, map[string]any{"version": name, "freshness": "Current", "resources": resources[name]})
	}
	if versions == nil {
		return nil
	}
	return []any{map[string]any{"metadata": map[string]any{"name": "things.example.com"}, "versions": versions}}
}

// crdWatch is the body of a watch of CRDs.
type crdWatch struct {
	ctx     context.Context //nolint:containedctx // of the request
	cluster *crdCluster
	at      int              // the version that has been sent
	left    []byte           // the unread part of its event
	end     <-chan time.Time // the timeout of the request
}

func (b *crdWatch) Read(p []byte) (int, error) {
	for len(b.left) == 0 {
		news := b.cluster.news.Next()
		b.cluster.mu.Lock()
		if b.cluster.down || b.cluster.hidden {
			b.cluster.mu.Unlock()
			return 0, io.ErrUnexpectedEOF
		}
		if b.at < len(b.cluster.frames) {
			b.left = []byte(b.cluster.frames[b.at])
			b.at++
		}
		b.cluster.mu.Unlock()
		if len(b.left) > 0 {
			break
		}
		select {
		case <-news:
		case <-b.end:
			return 0, io.EOF
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

func (b *crdWatch) Close() error { return nil }
