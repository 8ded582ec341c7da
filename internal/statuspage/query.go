package statuspage

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gvrkit/gvrkit/status"
)

// query is what a request asks for. Equal queries have equal answers.
type query struct {
	format   format
	resource string       // in detail; empty: the table
	state    status.State // only informers in that one
	text     string       // only informers with that in name, reason or owners
	offset   int

	base   string // the path of the table, relative to that of the request
	unsure bool   // if there is no such resource, the table is meant
}

// textAtMost is how long a filter's text may be.
const textAtMost = 200

// resourceAtMost is how long the name of a resource may be: a plural, a version and a group are
// not longer.
const resourceAtMost = 512

// newQuery reads r. It ignores parameters that it does not know.
func newQuery(r *http.Request) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return query{}, errors.New("the query parameters are invalid")
	}
	q := query{resource: values.Get("resource"), state: status.State(values.Get("state")), text: strings.TrimSpace(values.Get("q"))}
	q.format, err = formatOf(values.Get("format"), r.Header)
	if err != nil {
		return query{}, err
	}
	if q.state != "" {
		known := slices.IndexFunc(states, func(s status.State) bool { return strings.EqualFold(string(s), string(q.state)) })
		if known < 0 {
			return query{}, errors.New("state must be one of " + stateNames())
		}
		q.state = states[known]
	}
	if len(q.resource) > resourceAtMost {
		return query{}, fmt.Errorf("resource must have at most %d bytes", resourceAtMost)
	}
	if len(q.text) > textAtMost {
		return query{}, fmt.Errorf("q must have at most %d bytes", textAtMost)
	}
	if offset := values.Get("offset"); offset != "" {
		q.offset, err = strconv.Atoi(offset)
		if err != nil || q.offset < 0 {
			return query{}, errors.New("offset must be a number that is not negative")
		}
	}
	return q, nil
}

// matches reports whether q selects i.
func (q query) matches(i *status.Informer) bool {
	if q.state != "" && i.State != q.state {
		return false
	}
	if q.text == "" {
		return true
	}
	text := strings.ToLower(q.text)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return has(i.Name()) || has(string(i.Reason)) || slices.ContainsFunc(i.Owners, func(o status.Owner) bool { return has(o.Name) })
}

// link returns a relative reference to the response to q, which is independent of the mount path.
func (q query) link() string {
	values := url.Values{}
	set := func(key, value string) {
		if value != "" {
			values.Set(key, value)
		}
	}
	set("resource", q.resource)
	set("state", string(q.state))
	set("q", q.text)
	set("format", string(q.format))
	if q.offset > 0 {
		values.Set("offset", strconv.Itoa(q.offset))
	}
	return q.base + "?" + values.Encode()
}

// key returns the key of the response: queries with equal responses have equal keys.
func (q query) key() string { return strconv.FormatBool(q.unsure) + q.link() }

// format is the format of a response.
type format string

const (
	asText format = "text"
	asHTML format = "html"
	asJSON format = "json"
)

// contentType returns the content type of f.
func (f format) contentType() string {
	switch f {
	case asHTML:
		return "text/html; charset=utf-8"
	case asJSON:
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// formatOf returns the named format or, if name is empty, the format that header prefers.
func formatOf(name string, header http.Header) (format, error) {
	switch f := format(name); f {
	case asText, asHTML, asJSON:
		return f, nil
	case "":
		return accepted(header.Values("Accept")), nil
	}
	return asText, errors.New("format must be text, html or json")
}

// accepted returns the format with the highest quality in Accept headers, or the first of several.
// HTML and JSON must be named: */* means text.
func accepted(lines []string) format {
	best, weight := asText, 0.0
	for item := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		kind, parameters, _ := strings.Cut(item, ";")
		var f format
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/html", "application/xhtml+xml":
			f = asHTML
		case "application/json":
			f = asJSON
		case "text/plain":
			f = asText
		default:
			continue
		}
		if w := quality(parameters); w > weight {
			best, weight = f, w
		}
	}
	return best
}

// quality returns the parameter q; 1 if it is missing or invalid.
func quality(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(parameter, "=")
		if strings.ToLower(strings.TrimSpace(name)) != "q" {
			continue
		}
		if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			return q
		}
	}
	return 1
}

// place is the meaning of a request's path below the mount path of the handler.
type place struct {
	resource string // empty: the table
	unsure   bool   // resource may also be the end of the mount path
	unknown  bool   // the path does not exist
}

// placeOf returns the place of r. The mount path ends at the end of the pattern of an http.ServeMux,
// or where http.StripPrefix has cut the path. Other routers may not have changed the path: then only
// the last segment counts. Such a router may be at the root of an http.ServeMux.
func placeOf(r *http.Request) place {
	path, root := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/"), mount(r.Pattern)
	switch original, _ := url.ParseRequestURI(r.RequestURI); {
	case len(root) > 0, r.Pattern != "" && len(path) == 1:
		path = below(root, path)
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

// mount returns the segments of the mount path of a handler with pattern. A wildcard at the end is
// not part of the mount path.
func mount(pattern string) []string {
	_, path, _ := strings.Cut(pattern, "/") // after a method and a host
	segments := strings.Split(path, "/")
	if last := segments[len(segments)-1]; last == "" || wildcard(last) {
		segments = segments[:len(segments)-1]
	}
	return segments
}

func wildcard(segment string) bool { return strings.HasPrefix(segment, "{") || segment == "*" }

// below returns the end of path after mount. A prefix of mount may have been stripped from path
// before.
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
		if !wildcard(segment) && path[n] != unescaped(segment) {
			return false
		}
	}
	return true
}

// unescaped returns a segment of a pattern as an http.ServeMux compares it with paths.
func unescaped(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}
