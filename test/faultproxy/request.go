package faultproxy

import (
	"net/http"
	"strings"
)

// Request is an HTTP request as an API server reads it. For a path without a resource,
// such as /apis or /readyz, Verb is the HTTP method in lower case and the fields of the
// resource are empty. Requests are comparable.
type Request struct {
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection
	Group       string
	Version     string
	Resource    string
	Namespace   string
	Name        string
	Subresource string
	Path        string

	Query       string // encoded, as the client sent it
	Accept      string // the header of this name
	IfNoneMatch string // the header of this name
}

// ParseRequest reads r's method, path and query as k8s.io/apiserver's request info does,
// with four exceptions. It does not read a name from a field selector. A namespace is a
// resource without a namespace. A GET of an object with the parameter watch is a watch.
// The deprecated paths below /watch are those of a resource called watch.
func ParseRequest(r *http.Request) Request {
	req := Request{
		Verb:        strings.ToLower(r.Method),
		Path:        r.URL.Path,
		Query:       r.URL.RawQuery,
		Accept:      strings.Join(r.Header.Values("Accept"), ","),
		IfNoneMatch: r.Header.Get("If-None-Match"),
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		req.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		req.Group, req.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return req
	}
	if parts[0] == "namespaces" && len(parts) > 2 && (len(parts) > 3 || parts[2] != "status" && parts[2] != "finalize") {
		req.Namespace, parts = parts[1], parts[2:]
	}
	req.Resource = parts[0]
	if len(parts) > 1 {
		req.Name = parts[1]
	}
	if len(parts) > 2 {
		req.Subresource = strings.Join(parts[2:], "/")
	}
	req.Verb = verb(r, req.Name != "")
	return req
}

func verb(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		// For an API server, the parameter is true if it is present and not false.
		switch watch, present := r.URL.Query()["watch"]; {
		case present && !strings.EqualFold(watch[0], "false") && watch[0] != "0":
			return "watch"
		case named:
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		if !named {
			return "deletecollection"
		}
	}
	return strings.ToLower(r.Method)
}
