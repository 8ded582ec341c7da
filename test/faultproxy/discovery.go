package faultproxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// BreakGroup is the fault that what serves a group is down and was never seen up:
// the discovery documents of the group and its versions answer 503, and the
// aggregated document, in which an API server tells of all groups at once, calls
// the versions stale and has no resources for them. In the root documents of old,
// /api and /apis, the group stays listed. Requests that are not for discovery
// documents pass, so AnyDiscovery goes with it, or no match at all.
func BreakGroup(group string) Fault {
	return inDiscovery(group, func(version map[string]any) {
		version["freshness"] = "Stale"
		delete(version, "resources")
	})
}

// StaleGroup is the fault that what serves a group is down and was seen up: as
// BreakGroup, but the aggregated document keeps the resources last seen.
func StaleGroup(group string) Fault {
	return inDiscovery(group, func(version map[string]any) { version["freshness"] = "Stale" })
}

// inDiscovery breaks the documents of a group and changes its versions in the
// aggregated one.
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

// document is an answer that is held back as a whole.
type document struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (d *document) Header() http.Header { return d.header }

// WriteHeader implements [http.ResponseWriter].
func (d *document) WriteHeader(code int) {
	if code >= 200 { // below, another follows
		d.code = code
	}
}

// Write implements [http.ResponseWriter].
func (d *document) Write(b []byte) (int, error) { return d.body.Write(b) }

// change makes change to each version of group if the document is an aggregated
// one that has the group.
func (d *document) change(group string, change func(version map[string]any)) {
	var list map[string]any
	numbers := json.NewDecoder(bytes.NewReader(d.body.Bytes()))
	numbers.UseNumber() // they stay as they are
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
	_ = json.NewEncoder(&d.body).Encode(list) // what was decoded can be encoded
	if d.header.Get("Content-Length") != "" {
		d.header.Set("Content-Length", strconv.Itoa(d.body.Len()))
	}
	if d.header.Get("Etag") != "" { // by that of the server a client would keep this beyond the fault
		d.header.Set("Etag", fmt.Sprintf(`"%X"`, sha256.Sum256(d.body.Bytes())))
	}
}

// send answers with the document, or that it is the one that the client has.
func (d *document) send(w http.ResponseWriter, clientHas string) {
	maps.Copy(w.Header(), d.header)
	if etag := d.header.Get("Etag"); etag != "" && strings.Contains(clientHas, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(d.code)
	_, _ = w.Write(d.body.Bytes()) // the client has gone: nobody is left to tell
}
