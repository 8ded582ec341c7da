package statuspage

import (
	"net/http"
	"net/url"
	"strings"
)

// place is what the path of a request asks for, below the path that the handler is mounted at.
type place struct {
	resource string // empty: the table
	unsure   bool   // resource may as well be the end of the path that the handler is mounted at
	unknown  bool   // there is nothing at that path
}

// placeOf returns the place that r asks for. The path that the handler is mounted at ends where
// the pattern of an http.ServeMux does, or where http.StripPrefix has cut it off. A router that
// leaves no trace of it may have cut off nothing: then only the last segment counts.
func placeOf(r *http.Request) place {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch original, _ := url.ParseRequestURI(r.RequestURI); {
	case r.Pattern != "":
		path = below(mount(r.Pattern), path)
	case original != nil && original.Path == r.URL.Path:
		path = path[len(path)-1:]
		if !strings.Contains(path[0], ".") {
			return place{resource: path[0], unsure: true}
		}
	}
	switch len(path) {
	case 0:
		return place{}
	case 1:
		return place{resource: path[0]}
	}
	return place{unknown: true}
}

// mount returns the segments of the path that a handler with pattern is mounted at. A last
// segment that is a wildcard is what comes below.
func mount(pattern string) []string {
	_, path, _ := strings.Cut(pattern, "/") // after a method and a host
	segments := strings.Split(path, "/")
	if last := segments[len(segments)-1]; last == "" || wildcard(last) {
		segments = segments[:len(segments)-1]
	}
	return segments
}

func wildcard(segment string) bool { return strings.HasPrefix(segment, "{") || segment == "*" }

// below returns the end of path after mount. What of mount was stripped from path before is at
// the beginning of mount.
func below(mount, path []string) []string {
	for ; len(mount) > 0; mount = mount[1:] {
		if begins(path, mount) {
			return path[len(mount):]
		}
	}
	return path
}

func begins(path, mount []string) bool {
	if len(path) < len(mount) {
		return false
	}
	for n, segment := range mount {
		if path[n] != segment && !wildcard(segment) {
			return false
		}
	}
	return true
}
