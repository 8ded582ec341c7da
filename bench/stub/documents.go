package stub

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// aggregatedFormat is how a client asks for the aggregated document.
const aggregatedFormat = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// documents are all answers of discovery, encoded, by path. Those of the aggregated format have
// ETags.
type documents struct{ aggregated, etags, legacy map[string]string }

// newDocuments encodes the documents of types. Groups and versions are in the order of their
// first type.
func newDocuments(types []Type) (*documents, error) {
	lists := map[string]*apidiscovery.APIGroupDiscoveryList{}
	for _, path := range []string{"/api", "/apis"} {
		lists[path] = &apidiscovery.APIGroupDiscoveryList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
			Items:    []apidiscovery.APIGroupDiscovery{},
		}
	}
	for _, t := range types {
		version := versionOf(lists[rootOf(t.GVR.GroupVersion())], t.GVR.GroupVersion())
		version.Resources = append(version.Resources, t.discovery())
	}
	d := &documents{map[string]string{}, map[string]string{}, map[string]string{}}
	answers := map[string]any{}
	for path, list := range lists {
		body, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		d.aggregated[path], d.etags[path] = string(body), fmt.Sprintf(`"%X"`, sha512.Sum512(body))
		groups, resources, _ := discovery.SplitGroupsAndResources(*list) // no version is stale
		groups.TypeMeta = metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}
		answers[path] = groups
		for _, group := range groups.Groups {
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			answers[path+"/"+group.Name] = group
		}
		for gv, list := range resources {
			list.TypeMeta = metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
			answers[rootOf(gv)+"/"+gv.String()] = list
		}
	}
	answers["/api"] = metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	for path, answer := range answers {
		body, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		d.legacy[path] = string(body)
	}
	return d, nil
}

// rootOf returns the path of the aggregated document that has gv.
func rootOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api"
	}
	return "/apis"
}

// versionOf returns the entry of gv in list, which it adds if there is none.
func versionOf(list *apidiscovery.APIGroupDiscoveryList, gv schema.GroupVersion) *apidiscovery.APIVersionDiscovery {
	i := slices.IndexFunc(list.Items, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == gv.Group })
	if i < 0 {
		i = len(list.Items)
		list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gv.Group}})
	}
	group := &list.Items[i]
	k := slices.IndexFunc(group.Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == gv.Version })
	if k < 0 {
		k = len(group.Versions)
		group.Versions = append(group.Versions, apidiscovery.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
	}
	return &group.Versions[k]
}

// discovery returns the entry of the type in the aggregated document.
func (t Type) discovery() apidiscovery.APIResourceDiscovery {
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

// serve answers with the document of a path.
func (d *documents) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	body, found := d.legacy[path]
	if !found {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if aggregated, ok := d.aggregated[path]; ok {
		w.Header().Set("Vary", "Accept")
		if strings.Contains(r.Header.Get("Accept"), aggregatedFormat) {
			w.Header().Set("Content-Type", "application/json;"+aggregatedFormat)
			w.Header().Set("ETag", d.etags[path])
			if r.Header.Get("If-None-Match") == d.etags[path] {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			body = aggregated
		}
	}
	_, _ = w.Write([]byte(body)) // it fails if the client has gone
}
