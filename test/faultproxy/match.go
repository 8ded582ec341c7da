package faultproxy

import (
	"net/url"
	"slices"
	"strings"
)

// Match selects requests. It is called concurrently. A nil Match selects all requests.
type Match func(Request) bool

func (m Match) picks(r Request) bool { return m == nil || m(r) }

// Resource matches requests for a resource in any version and for its subresources.
func Resource(group, resource string) Match {
	return func(r Request) bool { return r.Resource == resource && r.Group == group }
}

// Group matches requests for all resources of a group, but not for its discovery documents.
func Group(group string) Match {
	return func(r Request) bool { return r.Resource != "" && r.Group == group }
}

// GVR matches requests for a resource in one version and for its subresources.
func GVR(group, version, resource string) Match {
	return func(r Request) bool {
		return r.Resource == resource && r.Group == group && r.Version == version
	}
}

// Verb matches requests with one of verbs.
func Verb(verbs ...string) Match {
	return func(r Request) bool { return slices.Contains(verbs, r.Verb) }
}

// Namespace matches requests in namespace. If namespace is empty, it matches requests
// without a namespace.
func Namespace(namespace string) Match {
	return func(r Request) bool { return r.Namespace == namespace }
}

// Name matches requests for the object with that name. If name is empty, it matches
// requests that do not name an object.
func Name(name string) Match {
	return func(r Request) bool { return r.Name == name }
}

// Path matches requests with exactly this path.
func Path(path string) Match {
	return func(r Request) bool { return r.Path == path }
}

// Query matches requests with a query parameter with this key and value, such as
// "sendInitialEvents" and "true".
func Query(key, value string) Match {
	return func(r Request) bool {
		values, _ := url.ParseQuery(r.Query) // invalid parameters are ignored
		return slices.Contains(values[key], value)
	}
}

// AnyDiscovery matches requests for discovery documents: /api, /apis and the documents of
// each group and version.
func AnyDiscovery() Match {
	return func(r Request) bool {
		parts := strings.Split(strings.Trim(r.Path, "/"), "/")
		return parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3
	}
}

// Discovery matches requests for the discovery documents of one group: /apis/group and
// /apis/group/version, or /api and /api/version for the core group "". It does not match
// /apis, which has all groups.
func Discovery(group string) Match {
	root := "/apis/" + group
	if group == "" {
		root = "/api"
	}
	return func(r Request) bool {
		version, ok := strings.CutPrefix(strings.TrimSuffix(r.Path, "/"), root)
		return ok && (version == "" || version[0] == '/' && strings.Count(version, "/") == 1)
	}
}

// All matches requests that all of matches match. Without arguments, it matches all requests.
func All(matches ...Match) Match {
	return func(r Request) bool {
		return !slices.ContainsFunc(matches, func(m Match) bool { return !m.picks(r) })
	}
}

// Any matches requests that at least one of matches matches. Without arguments, it matches none.
func Any(matches ...Match) Match {
	return func(r Request) bool {
		return slices.ContainsFunc(matches, func(m Match) bool { return m.picks(r) })
	}
}

// Not matches requests that match does not match.
func Not(match Match) Match {
	return func(r Request) bool { return !match.picks(r) }
}
