package cluster

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// documents are all answers about what is served, encoded.
type documents struct {
	// aggregated holds those of /api and /apis that tell everything, with their ETags.
	aggregated map[string]document
	// legacy holds the others, by path.
	legacy map[string][]byte
}

type document struct {
	body []byte
	etag string
}

// group is a group, in the server's order of versions.
type group struct {
	name     string
	versions []version
}

type version struct {
	name  string
	types []Type
}

// groupsOf puts types together. Groups and versions come in the order of their first type.
func groupsOf(types []Type) []group {
	var groups []group
	byName := map[string]int{}
	for _, t := range types {
		i, known := byName[t.GVR.Group]
		if !known {
			i = len(groups)
			byName[t.GVR.Group] = i
			groups = append(groups, group{name: t.GVR.Group})
		}
		g := &groups[i]
		k := slices.IndexFunc(g.versions, func(v version) bool { return v.name == t.GVR.Version })
		if k < 0 {
			k = len(g.versions)
			g.versions = append(g.versions, version{name: t.GVR.Version})
		}
		g.versions[k].types = append(g.versions[k].types, t)
	}
	return groups
}

// newDocuments encodes what tells of types.
func newDocuments(types []Type) (*documents, error) {
	groups := groupsOf(types)
	core, named := groups[:0:0], groups[:0:0]
	for _, g := range groups {
		if g.name == "" {
			core = append(core, g)
		} else {
			named = append(named, g)
		}
	}
	d := &documents{aggregated: map[string]document{}, legacy: map[string][]byte{}}
	for path, groups := range map[string][]group{"/api": core, "/apis": named} {
		body, err := json.Marshal(aggregate(groups))
		if err != nil {
			return nil, err
		}
		d.aggregated[path] = document{body: body, etag: fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(body)))}
	}
	return d, d.addLegacy(groups, named)
}

// addLegacy encodes the documents of the groups one by one, and the lists of them.
func (d *documents) addLegacy(all, named []group) error {
	answers := map[string]any{"/api": metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}}
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range named {
		entry := apiGroup(g)
		list.Groups = append(list.Groups, entry)
		entry.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		answers["/apis/"+g.name] = entry
	}
	answers["/apis"] = list
	for _, g := range all {
		for _, v := range g.versions {
			path := "/apis/" + g.name + "/" + v.name
			if g.name == "" {
				path = "/api/" + v.name
			}
			answers[path] = resourceList(g, v)
		}
	}
	for path, answer := range answers {
		body, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		d.legacy[path] = body
	}
	return nil
}

func apiGroup(g group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		gv := schema.GroupVersion{Group: g.name, Version: v.name}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v.name})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

func resourceList(g group, v version) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: schema.GroupVersion{Group: g.name, Version: v.name}.String(),
	}
	for _, t := range v.types {
		resource := metav1.APIResource{
			Name: t.GVR.Resource, SingularName: strings.ToLower(t.GVK.Kind), Kind: t.GVK.Kind, Namespaced: t.Namespaced,
			Verbs: t.verbs, ShortNames: t.shortNames, Categories: t.categories,
		}
		list.APIResources = append(list.APIResources, resource)
		for _, name := range t.subresources {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: t.GVR.Resource + "/" + name, Kind: t.GVK.Kind, Namespaced: t.Namespaced, Verbs: metav1.Verbs{"get", "patch", "update"},
			})
		}
	}
	return list
}

// aggregate returns the document that tells everything of groups.
func aggregate(groups []group) apidiscovery.APIGroupDiscoveryList {
	list := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
	for _, g := range groups {
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			entry := apidiscovery.APIVersionDiscovery{Version: v.name, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
			for _, t := range v.types {
				entry.Resources = append(entry.Resources, aggregateType(t))
			}
			item.Versions = append(item.Versions, entry)
		}
		list.Items = append(list.Items, item)
	}
	return list
}

func aggregateType(t Type) apidiscovery.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: t.GVK.Group, Version: t.GVK.Version, Kind: t.GVK.Kind}
	out := apidiscovery.APIResourceDiscovery{
		Resource: t.GVR.Resource, ResponseKind: kind, Scope: apidiscovery.ScopeCluster, SingularResource: strings.ToLower(t.GVK.Kind),
		Verbs: t.verbs, ShortNames: t.shortNames, Categories: t.categories,
	}
	if t.Namespaced {
		out.Scope = apidiscovery.ScopeNamespace
	}
	for _, name := range t.subresources {
		out.Subresources = append(out.Subresources, apidiscovery.APISubresourceDiscovery{
			Subresource: name, ResponseKind: kind, Verbs: []string{"get", "patch", "update"},
		})
	}
	return out
}
