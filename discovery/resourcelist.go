package discovery

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// parseList reads the resources of one group version.
func parseList(gv schema.GroupVersion, body []byte) (versionDoc, error) {
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return versionDoc{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if list.Kind != "APIResourceList" {
		return versionDoc{}, fmt.Errorf("%w: kind %q", errNoAnswer, list.Kind)
	}
	return readList(gv, &list)
}

func readList(gv schema.GroupVersion, list *metav1.APIResourceList) (versionDoc, error) {
	switch {
	case list == nil || list.GroupVersion == "" && list.APIResources == nil:
		return versionDoc{}, errNoAnswer
	case list.GroupVersion != gv.String():
		return versionDoc{}, fmt.Errorf("%w: %q", errOtherList, list.GroupVersion)
	case list.APIResources == nil:
		return versionDoc{}, errNoAnswer
	}
	version := versionDoc{name: gv.Version}
	subresources := map[string][]string{}
	for i := range list.APIResources {
		entry := &list.APIResources[i]
		if resource, subresource, found := strings.Cut(entry.Name, "/"); found {
			subresources[resource] = append(subresources[resource], subresource)
			continue
		}
		if entry.Name == "" || entry.Kind == "" {
			version.spoilt()
			continue
		}
		kind := gv.WithKind(entry.Kind)
		if entry.Group != "" {
			kind.Group = entry.Group
		}
		if entry.Version != "" {
			kind.Version = entry.Version
		}
		version.add(Resource{
			GVR:        gv.WithResource(entry.Name),
			GVK:        kind,
			Singular:   entry.SingularName,
			ShortNames: entry.ShortNames,
			Categories: entry.Categories,
			Namespaced: entry.Namespaced,
			Verbs:      entry.Verbs,
		})
	}
	for i := range version.resources {
		version.resources[i].Subresources = subresources[version.resources[i].GVR.Resource]
	}
	return version, nil
}
