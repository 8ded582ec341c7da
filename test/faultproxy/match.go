package faultproxy

import (
	"net/url"
	"slices"
	"strings"
)

// Match picks requests. It is called concurrently. A nil Match picks all.
type Match func(Request) bool

func (m Match) picks(r Request) bool { return m == nil || m(r) }

// Resource matches the requests for a resource in any version, and for its
// subresources.
func Resource(group, resource string) Match {
	return func(r Request) bool { return r.Resource == resource && r.Group == group }
}

// GVR matches the requests for a resource in one version, and for its
// subresources.
func GVR(group, version, resource string) Match {
	return func(r Request) bool {
		return r.Resource == resource && r.Group == group && r.Version == version
	}
}

// Verb matches the requests with any of verbs.
func Verb(verbs ...string) Match {
	return func(r Request) bool { return slices.Contains(verbs, r.Verb) }
}

// Namespace matches the requests within namespace; with "", those within none.
func Namespace(namespace string) Match {
	return func(r Request) bool { return r.Namespace == namespace }
}

// Name matches the requests for the object with this name; with "", those for
// none in particular.
func Name(name string) Match {
	return func(r Request) bool { return r.Name == name }
}

// Path matches the requests for exactly path.
func Path(path string) Match {
	return func(r Request) bool { return r.Path == path }
}

// Query matches the requests with a query parameter of this key and value, such
// as "sendInitialEvents" and "true".
func Query(key, value string) Match {
	return func(r Request) bool {
		values, _ := url.ParseQuery(r.Query) // what it could read
		return slices.Contains(values[key], value)
	}
}

// AnyDiscovery matches the requests for discovery documents: /api, /apis and
// those of each group and version.
func AnyDiscovery() Match {
	return func(r Request) bool {
		parts := strings.Split(strings.Trim(r.Path, "/"), "/")
		return parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3
	}
}

// Discovery matches the requests for the discovery documents of one group:
// /apis/group and /apis/group/version; for the core group, which is "", /api and
// /api/version. It does not match /apis, which tells of every other group as well.
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

// All matches what every one of matches matches; with none, everything.
func All(matches ...Match) Match {
	return func(r Request) bool {
		return !slices.ContainsFunc(matches, func(m Match) bool { return !m.picks(r) })
	}
}

// Any matches what at least one of matches matches; with none, nothing.
func Any(matches ...Match) Match {
	return func(r Request) bool {
		return slices.ContainsFunc(matches, func(m Match) bool { return m.picks(r) })
	}
}

// Not matches what match does not.
func Not(match Match) Match {
	return func(r Request) bool { return !match.picks(r) }
}
