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
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// crdPath is the path of the CustomResourceDefinitions.
const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// The conditions of a CRD that decide whether it is served.
const (
	established   = "Established"
	namesAccepted = "NamesAccepted"
)

// crdVerbs are the verbs of every custom resource, in the server's order.
var crdVerbs = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// terminatingVerbs are its verbs while its CRD is being deleted.
var terminatingVerbs = []string{"delete", "deletecollection", "get", "list", "watch"}

// slimMeta is the part of an object's metadata that is stored.
type slimMeta struct {
	Name              string            `json:"name"`
	UID               types.UID         `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	Generation        int64             `json:"generation"`
	Labels            map[string]string `json:"labels,omitempty"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp,omitempty"`

	// created is the time of the creation, and touched of the last write, both in whole seconds;
	// zero if it is not known.
	created, touched time.Time
}

// isBefore reports whether m is known to be older than version.
func (m *slimMeta) isBefore(version string) bool { return isBefore(m.ResourceVersion, version) }

// isBefore reports whether version is known to be below other.
func isBefore(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}

// condition is the part of a status condition that is stored.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// crd is the part of a CustomResourceDefinition that is stored. It does not have the schemas, which
// may have more than a megabyte.
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
		// AcceptedNames are the served names. Another CRD may have the names of the spec.
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

// names returns the served names, or those of the spec if there are none yet.
func (c *crd) names() crdNames {
	if c.Status.AcceptedNames.Plural == "" {
		return c.Spec.Names
	}
	return c.Status.AcceptedNames
}

// resources returns the resources that an established CRD defines, in the order of its versions.
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

// hasName reports whether the name of r is one of the CRD's names.
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

// mayServe reports whether the CRD has what r asks for, once it is established.
func (c *crd) mayServe(r reading) bool {
	return c.hasName(r) && slices.ContainsFunc(c.Spec.Versions, func(v crdVersion) bool {
		return v.Served && r.covers(schema.GroupVersion{Group: c.Spec.Group, Version: v.Name})
	})
}

// isSettled reports whether the server has processed this generation of the CRD: then the status does
// not change until the next generation.
func (c *crd) isSettled() bool {
	names := c.condition(namesAccepted)
	terminating := c.condition("Terminating")
	return c.isEstablished() && names != nil && names.Status == "True" && reflect.DeepEqual(c.Spec.Names, c.Status.AcceptedNames) &&
		(c.Metadata.DeletionTimestamp == nil || terminating != nil && terminating.Status == "True")
}

// explained returns refusal, or an error with its reason if the CRD of q exists.
func (r *Resolver) explained(ctx context.Context, q question, refusal error) error {
	rest, ok := r.server.(*restServer)
	name := q.definition()
	if !ok || name == "" {
		return refusal
	}
	definition, _, err := r.readCRD(ctx, rest, name)
	switch {
	case err != nil: // it does not exist, or can't be read
		return refusal
	case definition.isEstablished():
	case slices.ContainsFunc(q.readings(), definition.mayServe):
		return newNotEstablishedError(q, definition)
	default:
		return refusal
	}
	for _, res := range definition.resources() {
		gv := res.GVR.GroupVersion()
		if (q.ref.Version == "" || gv.Version == q.ref.Version) && !r.isAggregated(ctx, rest, gv) {
			return inconclusive(q.ref, errDisagree, gv)
		}
	}
	return refusal
}

// isAggregated reports whether another server is known to serve gv: then it has no resources of CRDs.
func (r *Resolver) isAggregated(ctx context.Context, server *restServer, gv schema.GroupVersion) bool {
	ctx, cancel := context.WithTimeout(ctx, r.options.requestTimeout)
	defer cancel()
	item, ref := &apiService{}, objectRef{apiServicePath, gv.Version + "." + gv.Group}
	err := server.object(ctx, ref, acceptLegacy, item, &item.Metadata)
	return err == nil && item.backing() == BackingAggregated
}

// readCRD requests one CRD. Concurrent calls share the request. Joined reports whether it had been sent before the call.
func (r *Resolver) readCRD(ctx context.Context, server *restServer, name string) (definition *crd, joined bool, err error) {
	return r.definitions.Do(ctx, name, nil, func(ctx context.Context) (*crd, error) {
		definition, ref := &crd{}, objectRef{crdPath, name}
		err := server.object(ctx, ref, acceptLegacy, definition, &definition.Metadata)
		server.endpoint.pauses.settle(ref.path+"/"+ref.name, err)
		return definition, err
	})
}

// definition returns the name of the CRD that would define the resource of q, or "".
func (q question) definition() string {
	if q.form == kind || q.ref.Group == "" || q.ref.Resource != strings.ToLower(q.ref.Resource) {
		return ""
	}
	gr := schema.GroupResource{Group: q.ref.Group, Resource: q.ref.Resource}
	return gr.String()
}

// metaOnly requests the metadata of an object. A server that does not support it sends the object.
const metaOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// apiServicePath is the path of the APIServices, on a server with an aggregator.
const apiServicePath = "/apis/apiregistration.k8s.io/v1/apiservices"

// automanaged is the label of the APIServices that kube-apiserver creates: "onstart" for built-in
// types, "true" for those of CustomResourceDefinitions.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// apiService is the part of an APIService that is stored.
type apiService struct {
	Metadata slimMeta `json:"metadata"`
	Spec     struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		// Service is the server of the group version; nil: this server.
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`

	// serviceKnown reports whether Spec.Service is known. It is nil for the APIServices that the server
	// creates; the others must be read.
	serviceKnown bool
}

// apiServiceOf returns an APIService from its metadata.
func apiServiceOf(meta *slimMeta) *apiService {
	item := &apiService{Metadata: *meta}
	gv := groupVersionOf(meta.Name)
	item.Spec.Group, item.Spec.Version = gv.Group, gv.Version
	item.serviceKnown = item.isAutomanaged()
	return item
}

// groupVersionOf returns the group version of the APIService of that name, which the server's
// validation guarantees.
func groupVersionOf(name string) schema.GroupVersion {
	version, group, _ := strings.Cut(name, ".")
	return schema.GroupVersion{Group: group, Version: version}
}

func (a *apiService) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: a.Spec.Group, Version: a.Spec.Version}
}

// isAutomanaged reports whether a is not nil and the server has created it.
func (a *apiService) isAutomanaged() bool { return a != nil && a.Metadata.Labels[automanaged] != "" }

// backing returns what serves the group version. It is unknown for a local APIService that the server
// has not created: then the CRDs decide.
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

// service returns the namespace/name of the Service of the group version; empty if there is none.
func (a *apiService) service() string {
	if a == nil || a.Spec.Service == nil {
		return ""
	}
	return a.Spec.Service.Namespace + "/" + a.Spec.Service.Name
}

// available reports whether the server behind the APIService is available.
func (a *apiService) available() bool {
	i := slices.IndexFunc(a.Status.Conditions, func(c condition) bool { return c.Type == "Available" })
	return i >= 0 && a.Status.Conditions[i].Status == "True"
}

// waitingFor returns the CRD with the name of r that is not served, or nil.
func (c *snapshot) waitingFor(r reading) *crd {
	for _, g := range c.groupsFor(r) {
		for _, definition := range g.waiting {
			if definition.mayServe(r) {
				return definition
			}
		}
	}
	return nil
}
