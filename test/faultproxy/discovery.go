package faultproxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// BreakGroup returns a fault that simulates a group whose server is down since the start
// of the API server. Requests for the discovery documents of the group and its versions
// get 503. In the aggregated document of all groups, the versions are stale and have no
// resources. In the legacy root documents, /api and /apis, the group stays listed.
// Requests for other paths pass, so use the fault with AnyDiscovery or a nil Match. With DeadGroup, those for resources fail too.
func BreakGroup(group string) Fault {
	return inDiscovery(group, func(version map[string]any) {
		version["freshness"] = "Stale"
		delete(version, "resources")
	})
}

// DeadGroup is BreakGroup, and requests for the resources of the group get 503. Use it with a nil Match.
func DeadGroup(group string) Fault {
	return func(next http.Handler) http.Handler {
		documents, resources, dead := BreakGroup(group)(next), failure(http.StatusServiceUnavailable), Group(group)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if dead(ParseRequest(r)) {
				resources.ServeHTTP(w, r)
				return
			}
			documents.ServeHTTP(w, r)
		})
	}
}

// StaleGroup returns a fault that simulates a group whose server went down later. It is
// BreakGroup, but the aggregated document keeps the last known resources.
func StaleGroup(group string) Fault {
	return inDiscovery(group, func(version map[string]any) { version["freshness"] = "Stale" })
}

// StaleDiscovery returns a fault that simulates a server whose discovery does not change any
// more: requests for discovery documents get the responses from the time of the injection,
// errors included, and 404 for groups and versions that did not exist then. Inject requests
// these documents from the server, not through faults that were injected before, and waits
// for them, at most 30 s. Requests for other paths pass. A document without a complete response
// by then, and all documents below a root that could not be read, get 503.
func StaleDiscovery() Fault {
	return func(next http.Handler) http.Handler {
		kept := crawl(next)
		discovery := AnyDiscovery()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			req := ParseRequest(r)
			if !discovery(req) {
				next.ServeHTTP(w, r)
				return
			}
			path := "/" + strings.Trim(req.Path, "/")
			doc := kept[path]
			if strings.Contains(legible(r).Header.Get("Accept"), "g=apidiscovery.k8s.io") && kept[path+aggregated] != nil {
				doc = kept[path+aggregated]
			}
			root, _, _ := strings.Cut(path[1:], "/")
			switch {
			case doc != nil:
				doc.send(w, req.IfNoneMatch)
			case kept["/"+root].code == http.StatusOK:
				failure(http.StatusNotFound).ServeHTTP(w, r)
			default:
				failure(http.StatusServiceUnavailable).ServeHTTP(w, r)
			}
		})
	}
}

// aggregated is the end of the key of an aggregated document, in the result of crawl.
const aggregated = " aggregated"

// groupList has what crawl reads of a document with groups or versions.
type groupList struct {
	Versions []string
	Groups   []struct {
		Versions []struct{ GroupVersion string }
	}
}

// crawl requests all discovery documents, and returns them by path.
func crawl(server http.Handler) map[string]*document {
	documents := map[string]*document{}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) //nolint:forbidigo // Inject has no context
	defer cancel()
	ask := func(key, path, accept string) (list groupList) {
		doc := &document{header: http.Header{}, code: http.StatusOK}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
		if err != nil {
			return list
		}
		r.Header.Set("Accept", accept)
		r.Header.Set("Accept-Encoding", "identity")
		defer func() {
			if recover() != nil || ctx.Err() != nil { // a panic ends a response, and the end of ctx may have cut it
				doc = &document{header: http.Header{}}
				failure(http.StatusServiceUnavailable).ServeHTTP(doc, r)
			}
			documents[key] = doc
		}()
		server.ServeHTTP(doc, r)
		_ = json.Unmarshal(doc.body.Bytes(), &list) // the documents of other kinds have neither field
		return list
	}
	for _, root := range []string{"/api", "/apis"} {
		ask(root+aggregated, root, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		list := ask(root, root, "application/json")
		for _, version := range list.Versions {
			ask(root+"/"+version, root+"/"+version, "application/json")
		}
		for _, group := range list.Groups {
			for _, version := range group.Versions {
				name, _, _ := strings.Cut(version.GroupVersion, "/")
				path := root + "/" + version.GroupVersion
				ask(path, path, "application/json")
				if documents[root+"/"+name] == nil {
					ask(root+"/"+name, root+"/"+name, "application/json")
				}
			}
		}
	}
	return documents
}

// inDiscovery returns a fault that breaks the documents of a group and changes its
// versions in the aggregated document.
func inDiscovery(group string, change func(version map[string]any)) Fault {
	own := Discovery(group)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch req := ParseRequest(r); {
			case strings.Trim(req.Path, "/") == "api", strings.Trim(req.Path, "/") == "apis":
				got := &document{header: http.Header{}, code: http.StatusOK}
				next.ServeHTTP(got, legible(r))
				got.change(group, change)
				got.send(w, req.IfNoneMatch)
			case own(req):
				failure(http.StatusServiceUnavailable).ServeHTTP(w, r)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}

// document buffers a whole response.
type document struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (d *document) Header() http.Header { return d.header }

// WriteHeader implements [http.ResponseWriter].
func (d *document) WriteHeader(code int) {
	if code >= 200 { // another header follows a smaller code
		d.code = code
	}
}

// Write implements [http.ResponseWriter].
func (d *document) Write(b []byte) (int, error) { return d.body.Write(b) }

// change calls change for each version of group if the document is aggregated and has
// the group.
func (d *document) change(group string, change func(version map[string]any)) {
	var list map[string]any
	numbers := json.NewDecoder(bytes.NewReader(d.body.Bytes()))
	numbers.UseNumber() // numbers do not change
	if numbers.Decode(&list) != nil || list["kind"] != "APIGroupDiscoveryList" {
		return
	}
	changed := false
	items, _ := list["items"].([]any)
	for _, item := range items {
		item, _ := item.(map[string]any)
		metadata, _ := item["metadata"].(map[string]any)
		if name, _ := metadata["name"].(string); name != group {
			continue
		}
		versions, _ := item["versions"].([]any)
		for _, version := range versions {
			if version, ok := version.(map[string]any); ok {
				change(version)
				changed = true
			}
		}
	}
	if !changed {
		return
	}
	d.body.Reset()
	_ = json.NewEncoder(&d.body).Encode(list) // can't fail for decoded values
	if d.header.Get("Content-Length") != "" {
		d.header.Set("Content-Length", strconv.Itoa(d.body.Len()))
	}
	if d.header.Get("Etag") != "" { // with the server's Etag, a client would keep this document after the fault
		d.header.Set("Etag", fmt.Sprintf(`"%X"`, sha256.Sum256(d.body.Bytes())))
	}
}

// send responds with the document, or with 304 if the client already has it.
func (d *document) send(w http.ResponseWriter, clientHas string) {
	maps.Copy(w.Header(), d.header)
	if etag := d.header.Get("Etag"); etag != "" && strings.Contains(clientHas, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(d.code)
	_, _ = w.Write(d.body.Bytes()) // an error means that the client has disconnected
}
