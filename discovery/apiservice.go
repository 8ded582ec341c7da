package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiServicePath is where the APIServices are, on servers that aggregate others.
const apiServicePath = "/apis/apiregistration.k8s.io/v1/apiservices"

// automanaged is the label by which kube-apiserver marks the APIServices that it makes
// itself: "onstart" for what is built in, "true" for those of CustomResourceDefinitions.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// apiService is what is kept of an APIService.
type apiService struct {
	Metadata slimMeta `json:"metadata"`
	Spec     struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		// Service is who serves the group version; nil: the server itself.
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`

	// known says that Spec.Service is: the server makes none for others, and what it has
	// not made itself has to be read.
	known bool
}

// apiServiceOf returns what the metadata of an APIService tells of it.
func apiServiceOf(meta *slimMeta) *apiService {
	item := &apiService{Metadata: *meta}
	gv := groupVersionOf(meta.Name)
	item.Spec.Group, item.Spec.Version = gv.Group, gv.Version
	item.known = item.isAutomanaged()
	return item
}

// groupVersionOf returns the group version of the APIService of that name: the server sees to
// it that the name says so.
func groupVersionOf(name string) schema.GroupVersion {
	version, group, _ := strings.Cut(name, ".")
	return schema.GroupVersion{Group: group, Version: version}
}

func (a *apiService) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: a.Spec.Group, Version: a.Spec.Version}
}

// isAutomanaged reports whether there is one and the server has made it.
func (a *apiService) isAutomanaged() bool { return a != nil && a.Metadata.Labels[automanaged] != "" }

// backing says what serves the group version, as far as that is known. Of one that is local,
// and that the server has not made itself, the CRDs tell.
func (a *apiService) backing() Backing {
	switch {
	case a.Spec.Service != nil:
		return BackingAggregated
	case a.Metadata.Labels[automanaged] == "true":
		return BackingCRD
	case a.isAutomanaged():
		return BackingBuiltIn
	}
	return BackingUnknown
}

// available reports whether the server reaches what serves the group version.
func (a *apiService) available() bool {
	i := slices.IndexFunc(a.Status.Conditions, func(c condition) bool { return c.Type == "Available" })
	return i >= 0 && a.Status.Conditions[i].Status == "True"
}
