package discovery

import (
	"slices"

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
}

func (a *apiService) meta() *slimMeta { return &a.Metadata }

func (a *apiService) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: a.Spec.Group, Version: a.Spec.Version}
}

// apiServiceName returns the name that the APIService of gv must have.
func apiServiceName(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// isAutomanaged reports whether there is one and the server has made it.
func (a *apiService) isAutomanaged() bool { return a != nil && a.Metadata.Labels[automanaged] != "" }

// backing says what serves the group version.
func (a *apiService) backing() Backing {
	switch {
	case a.Spec.Service != nil:
		return BackingAggregated
	case a.Metadata.Labels[automanaged] == "true":
		return BackingCRD
	}
	return BackingBuiltIn
}

// available reports whether the server reaches what serves the group version.
func (a *apiService) available() bool {
	i := slices.IndexFunc(a.Status.Conditions, func(c condition) bool { return c.Type == "Available" })
	return i >= 0 && a.Status.Conditions[i].Status == "True"
}
