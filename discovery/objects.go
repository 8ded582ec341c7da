package discovery

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// crdPath is where the CustomResourceDefinitions are.
const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// The conditions of a CRD that say whether it is served.
const (
	established   = "Established"
	namesAccepted = "NamesAccepted"
)

// crdVerbs are what every custom resource supports, in the order in which the server
// lists them.
var crdVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// terminatingVerbs are what it supports while its CRD is being deleted.
var terminatingVerbs = []string{"delete", "deletecollection", "get", "list", "watch"}

// slimMeta is what is kept of an object's metadata.
type slimMeta struct {
	Name              string            `json:"name"`
	UID               types.UID         `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Generation        int64             `json:"generation"`
	Labels            map[string]string `json:"labels,omitempty"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp,omitempty"`

	// created is when it was created, and touched when it was last written, both in whole
	// seconds; zero if that is not told.
	created, touched time.Time
}

// condition is what is kept of a status condition.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// crd is what is kept of a CustomResourceDefinition: never its schemas, of which one
// may have a megabyte and more.
type crd struct {
	Metadata slimMeta `json:"metadata"`
	Spec     struct {
		Group      string       `json:"group"`
		Names      crdNames     `json:"names"`
		Scope      string       `json:"scope"`
		Versions   []crdVersion `json:"versions"`
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
		// AcceptedNames are those that are served; the names of the spec may
		// be another's.
		AcceptedNames crdNames `json:"acceptedNames"`
	} `json:"status"`
}

type crdNames struct {
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	Kind       string   `json:"kind"`
	ShortNames []string `json:"shortNames"`
	Categories []string `json:"categories"`
}

type crdVersion struct {
	Name         string `json:"name"`
	Served       bool   `json:"served"`
	Subresources struct {
		Status *struct{} `json:"status"`
		Scale  *struct{} `json:"scale"`
	} `json:"subresources"`
}

// condition returns the condition of that type, or nil.
func (c *crd) condition(name string) *condition {
	i := slices.IndexFunc(c.Status.Conditions, func(cond condition) bool { return cond.Type == name })
	if i < 0 {
		return nil
	}
	return &c.Status.Conditions[i]
}

func (c *crd) isEstablished() bool {
	cond := c.condition(established)
	return cond != nil && cond.Status == "True"
}

// names returns the names that are served, or are to be.
func (c *crd) names() crdNames {
	if c.Status.AcceptedNames.Plural == "" {
		return c.Spec.Names
	}
	return c.Status.AcceptedNames
}

// resources returns what is served of an established CRD, in the order of its versions.
func (c *crd) resources() []Resource {
	if !c.isEstablished() {
		return nil
	}
	names := c.names()
	verbs := crdVerbs
	if cond := c.condition("Terminating"); cond != nil && cond.Status == "True" {
		verbs = terminatingVerbs
	}
	var resources []Resource
	for i := range c.Spec.Versions {
		v := &c.Spec.Versions[i]
		if !v.Served {
			continue
		}
		res := Resource{
			GVR:         schema.GroupVersionResource{Group: c.Spec.Group, Version: v.Name, Resource: names.Plural},
			GVK:         schema.GroupVersionKind{Group: c.Spec.Group, Version: v.Name, Kind: names.Kind},
			Singular:    names.Singular,
			ShortNames:  names.ShortNames,
			Categories:  names.Categories,
			Namespaced:  c.Spec.Scope == string(apidiscovery.ScopeNamespace),
			Verbs:       verbs,
			Backing:     BackingCRD,
			CRDUID:      c.Metadata.UID,
			Terminating: c.Metadata.DeletionTimestamp != nil,
		}
		if v.Subresources.Status != nil {
			res.Subresources = append(res.Subresources, "status")
		}
		if v.Subresources.Scale != nil {
			res.Subresources = append(res.Subresources, "scale")
		}
		resources = append(resources, res)
	}
	return resources
}

// hasName reports whether r may mean the CRD by one of the names that it asks for.
func (c *crd) hasName(r reading) bool {
	names := c.Spec.Names
	switch r.form {
	case plural:
		return r.name == names.Plural
	case kind:
		return r.name == names.Kind
	}
	for _, name := range append([]string{names.Plural, names.Singular, names.Kind}, names.ShortNames...) {
		if name != "" && strings.ToLower(name) == r.name {
			return true
		}
	}
	return false
}

// isSettled reports whether the server has dealt with the CRD as it is: its status says
// nothing else as long as the generation is the same.
func (c *crd) isSettled() bool {
	names := c.condition(namesAccepted)
	terminating := c.condition("Terminating")
	return c.isEstablished() && names != nil && names.Status == "True" && reflect.DeepEqual(c.Spec.Names, c.Status.AcceptedNames) &&
		(c.Metadata.DeletionTimestamp == nil || terminating != nil && terminating.Status == "True")
}

// explained returns refusal, or the reason for it if that is a CRD that is there.
func (r *Resolver) explained(ctx context.Context, q question, refusal error) error {
	rest, ok := r.server.(*restServer)
	name := q.definition()
	if !ok || name == "" {
		return refusal
	}
	definition, _, err := r.definitions.Do(ctx, name, nil, func(ctx context.Context) (*crd, error) {
		definition, ref := &crd{}, objectRef{crdPath, name}
		err := rest.object(ctx, ref, acceptLegacy, definition, &definition.Metadata)
		rest.endpoint.pauses.settle(ref.path+"/"+ref.name, err)
		return definition, err
	})
	switch {
	case err != nil: // not there, or not to be told
		return refusal
	case !definition.isEstablished():
		return newNotEstablishedError(q, definition)
	}
	for _, res := range definition.resources() {
		if q.ref.Version == "" || res.GVR.Version == q.ref.Version {
			return inconclusive(q.ref, errDisagree, res.GVR.GroupVersion())
		}
	}
	return refusal
}

// definition returns the name of the CRD that q would be of, or "".
func (q question) definition() string {
	if q.form == kind || q.ref.Group == "" || q.ref.Resource != strings.ToLower(q.ref.Resource) {
		return ""
	}
	gr := schema.GroupResource{Group: q.ref.Group, Resource: q.ref.Resource}
	return gr.String()
}

// metaOnly asks for an object's metadata; a server that can't tell them alone sends all.
const metaOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

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
