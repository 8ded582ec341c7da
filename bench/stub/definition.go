package stub

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The resources that a server has besides the types that it lists.
var (
	CRDs        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	APIServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

	crdKind        = CRDs.GroupVersion().WithKind("CustomResourceDefinition")
	apiServiceKind = APIServices.GroupVersion().WithKind("APIService")
)

const (
	// perGroup is how many CRDs a group has.
	perGroup = 6
	// newcomers is the number of the first CRD that no server has from the beginning.
	newcomers = 1_000_000
	// created is when everything was created.
	created = "2026-03-12T09:30:00Z"
)

// Type is one resource in one version.
type Type struct {
	GVR        schema.GroupVersionResource
	GVK        schema.GroupVersionKind
	Namespaced bool

	shortNames, categories, verbs, subresources []string
}

// Ref returns the name of the type without its version.
func (t Type) Ref() string { return strings.TrimSuffix(t.GVR.Resource+"."+t.GVR.Group, ".") }

// Object returns the i-th object of the type, of some 800 bytes. Most of them are in an
// annotation: servers drop fields that the schema of a CRD lacks.
func (t Type) Object(i int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(t.GVK)
	obj.SetName(fmt.Sprintf("object-%d", i))
	if t.Namespaced {
		obj.SetNamespace("default")
	}
	obj.SetLabels(map[string]string{"app.kubernetes.io/name": t.GVR.Resource, "app.kubernetes.io/instance": fmt.Sprint(i)})
	obj.SetAnnotations(map[string]string{"bench.example.com/text": strings.Repeat(t.GVK.String()+" ", 8)})
	return obj
}

// verbs are those of types, by the names that builtin.txt has for them.
var verbs = map[string][]string{
	"all":    {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	"read":   {"get", "list"},
	"create": {"create"},
}

//go:embed builtin.txt
var builtIn string

// BuiltIn returns the types that every server with discovery has, in the server's order.
func BuiltIn() ([]Type, error) {
	list := func(column string) []string {
		return strings.FieldsFunc(strings.TrimPrefix(column, "-"), func(r rune) bool { return r == ',' })
	}
	var types []Type
	for line := range strings.Lines(builtIn) {
		columns := strings.Fields(line)
		if len(columns) == 0 || columns[0] == "#" {
			continue
		}
		gv, err := schema.ParseGroupVersion(columns[0])
		if err != nil || len(columns) != 8 || verbs[columns[6]] == nil {
			return nil, fmt.Errorf("builtin.txt has an invalid line: %q", line)
		}
		types = append(types, Type{
			GVR: gv.WithResource(columns[2]), GVK: gv.WithKind(columns[1]), Namespaced: columns[5] == "Namespaced",
			shortNames: list(columns[3]), categories: list(columns[4]), verbs: verbs[columns[6]], subresources: list(columns[7]),
		})
	}
	return types, nil
}

// The parts of the names of groups and kinds.
var (
	areas   = strings.Fields("networking storage compute monitoring security database messaging identity policy backup certificates dns registry workflow autoscaling logging tracing gateway mesh secrets")
	domains = strings.Fields("acme.io example.com fabrikam.dev northwind.cloud contoso.org")
	traits  = strings.Split(",Cluster,Remote,Managed,Shared,Virtual,Static,External,Default,Scoped,Regional,Private,Edge,Legacy,Primary", ",")
	things  = strings.Fields("Pool Route Volume Endpoint Certificate Database Queue Topic Binding Policy Schedule Snapshot Account Gateway Listener Tunnel Quota Profile Template Region")
)

// Definition is a CustomResourceDefinition, generated from its number.
type Definition struct {
	Number int
	// Types are what it defines, the preferred version first.
	Types []Type
}

// Definitions returns the first n.
func Definitions(n int) []Definition {
	all := make([]Definition, n)
	for i := range all {
		all[i] = NewDefinition(i)
	}
	return all
}

// Newcomer returns a CRD that no server has from the beginning, in a group of its own.
func Newcomer(i int) Definition { return NewDefinition(newcomers + i) }

// NewDefinition returns the CRD with the number i.
func NewDefinition(i int) Definition {
	group := i / perGroup
	name := areas[group%len(areas)] + "." + domains[group/len(areas)%len(domains)]
	if round := group / len(areas) / len(domains); round > 0 {
		name = fmt.Sprintf("r%d.%s", round, name)
	}
	if i >= newcomers {
		name = fmt.Sprintf("newcomer-%d.%s", i-newcomers, domains[0])
	}
	kind := traits[i%len(traits)] + things[i/len(traits)%len(things)]
	plural := strings.ToLower(kind) + "s"
	if stem, found := strings.CutSuffix(plural, "ys"); found {
		plural = stem + "ies"
	}
	d := Definition{Number: i}
	for _, version := range [][]string{{"v1", "v1beta1"}, {"v1"}, {"v1alpha1"}}[i%3] {
		gv := schema.GroupVersion{Group: name, Version: version}
		t := Type{
			GVR: gv.WithResource(plural), GVK: gv.WithKind(kind), Namespaced: i%4 != 3,
			categories: []string{areas[group%len(areas)]}, verbs: verbs["all"],
		}
		if i%2 == 0 {
			t.shortNames = []string{fmt.Sprintf("%s%d", strings.ToLower(kind[:2]), i)}
		}
		if i%5 != 4 {
			t.subresources = []string{"status"}
		}
		d.Types = append(d.Types, t)
	}
	return d
}

// has reports whether the CRD defines a type.
func (d Definition) has(t Type) bool { return t.GVR.GroupResource() == d.Types[0].GVR.GroupResource() }

// Name returns the name of the CRD.
func (d Definition) Name() string { return d.Types[0].Ref() }

// object returns the CRD with schemas of about size bytes together, before or after the server
// has established it.
func (d Definition) object(size int, established bool, version string) map[string]any {
	random := rand.New(rand.NewPCG(1, uint64(d.Number)))
	first := d.Types[0]
	names := map[string]any{
		"plural": first.GVR.Resource, "singular": strings.ToLower(first.GVK.Kind), "kind": first.GVK.Kind,
		"listKind": first.GVK.Kind + "List", "shortNames": first.shortNames, "categories": first.categories,
	}
	var versions []any
	for i, t := range d.Types {
		subresources := map[string]any{}
		for _, name := range t.subresources {
			subresources[name] = map[string]any{}
		}
		versions = append(versions, map[string]any{
			"name": t.GVR.Version, "served": true, "storage": i == 0, "subresources": subresources,
			"schema": map[string]any{"openAPIV3Schema": newSchema(random, size/len(d.Types))},
		})
	}
	scope := "Cluster"
	if first.Namespaced {
		scope = "Namespaced"
	}
	status := map[string]any{"acceptedNames": map[string]any{"kind": "", "plural": ""}, "storedVersions": []any{first.GVR.Version}}
	if established {
		status["acceptedNames"] = names
		status["conditions"] = []any{
			condition("NamesAccepted", "NoConflicts", "no conflicts found"),
			condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
		}
	}
	return map[string]any{
		"apiVersion": crdKind.GroupVersion().String(), "kind": crdKind.Kind,
		"metadata": map[string]any{
			"name": d.Name(), "uid": uid(random), "resourceVersion": version, "generation": 1,
			"creationTimestamp": created, "annotations": map[string]any{"controller-gen.kubebuilder.io/version": "v0.19.0"},
		},
		"spec": map[string]any{
			"group": first.GVR.Group, "names": names, "scope": scope, "versions": versions,
			"conversion": map[string]any{"strategy": "None"},
		},
		"status": status,
	}
}

// CRD returns the CRD as a manifest, with schemas of about size bytes together.
func (d Definition) CRD(size int) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(d.object(size, true, ""))
	if err != nil {
		return nil, err
	}
	crd := &unstructured.Unstructured{}
	if err := crd.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	delete(crd.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(crd.Object, "metadata", field)
	}
	return crd, nil
}

// apiServiceName returns the name of the APIService of gv.
func apiServiceName(gv schema.GroupVersion) string {
	return strings.TrimSuffix(gv.Version+"."+gv.Group, ".")
}

// apiService returns the APIService of gv, which tells whether CRDs define its types. That of
// metrics.k8s.io names another server.
func apiService(gv schema.GroupVersion, custom bool, version string) map[string]any {
	seed := fnv.New64()
	_, _ = seed.Write([]byte(gv.String())) // it never fails
	metadata := map[string]any{
		"name": apiServiceName(gv), "uid": uid(rand.New(rand.NewPCG(2, seed.Sum64()))), "resourceVersion": version,
		"creationTimestamp": created, "labels": map[string]any{"kube-aggregator.kubernetes.io/automanaged": "onstart"},
	}
	if custom {
		metadata["labels"] = map[string]any{"kube-aggregator.kubernetes.io/automanaged": "true"}
	}
	spec := map[string]any{"version": gv.Version, "groupPriorityMinimum": 1000, "versionPriority": 100}
	if gv.Group != "" {
		spec["group"] = gv.Group
	}
	reason := "Local"
	if gv.Group == "metrics.k8s.io" {
		delete(metadata, "labels")
		spec["service"] = map[string]any{"namespace": "kube-system", "name": "metrics-server", "port": 443}
		reason = "Passed"
	}
	return map[string]any{
		"apiVersion": apiServiceKind.GroupVersion().String(), "kind": apiServiceKind.Kind, "metadata": metadata, "spec": spec,
		"status": map[string]any{"conditions": []any{condition("Available", reason, "it is available")}},
	}
}

func condition(name, reason, message string) map[string]any {
	return map[string]any{"type": name, "status": "True", "reason": reason, "message": message, "lastTransitionTime": created}
}

func uid(random *rand.Rand) string {
	a, b := random.Uint64(), random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}
