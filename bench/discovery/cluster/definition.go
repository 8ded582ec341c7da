package cluster

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// perGroup is how many CRDs a group has.
	perGroup = 6
	// apart is the number from which on each CRD has a group of its own.
	apart = 1_000_000
)

// What names of groups and kinds are made of.
var (
	areas = []string{
		"networking", "storage", "compute", "monitoring", "security", "database", "messaging", "identity", "policy", "backup",
		"certificates", "dns", "registry", "workflow", "autoscaling", "logging", "tracing", "gateway", "mesh", "secrets",
	}
	domains = []string{"acme.io", "example.com", "fabrikam.dev", "northwind.cloud", "contoso.org"}
	traits  = []string{"", "Cluster", "Remote", "Managed", "Shared", "Virtual", "Static", "External", "Default", "Scoped", "Regional", "Private", "Edge", "Legacy", "Primary"}
	things  = []string{
		"Pool", "Route", "Volume", "Endpoint", "Certificate", "Database", "Queue", "Topic", "Binding", "Policy",
		"Schedule", "Snapshot", "Account", "Gateway", "Listener", "Tunnel", "Quota", "Profile", "Template", "Region",
	}
)

// Definition is a CustomResourceDefinition, made up from its number.
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

// Newcomer returns a CRD that no cluster has from the beginning, in a group of its own.
func Newcomer(i int) Definition { return NewDefinition(apart + i) }

// NewDefinition returns the CRD with the number i.
func NewDefinition(i int) Definition {
	group := i / perGroup
	name := fmt.Sprintf("%s.%s", areas[group%len(areas)], domains[group/len(areas)%len(domains)])
	if round := group / len(areas) / len(domains); round > 0 {
		name = fmt.Sprintf("r%d.%s", round, name)
	}
	if i >= apart {
		name = fmt.Sprintf("newcomer-%d.%s", i-apart, domains[0])
	}
	kind := traits[i%len(traits)] + things[i/len(traits)%len(things)]
	d := Definition{Number: i}
	for _, version := range versionsOf(i) {
		gv := schema.GroupVersion{Group: name, Version: version}
		t := Type{
			GVR: gv.WithResource(plural(kind)), GVK: gv.WithKind(kind), Namespaced: i%4 != 3,
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

func versionsOf(i int) []string {
	switch i % 3 {
	case 0:
		return []string{"v1", "v1beta1"}
	case 1:
		return []string{"v1"}
	}
	return []string{"v1alpha1"}
}

func plural(kind string) string {
	name := strings.ToLower(kind)
	if stem, found := strings.CutSuffix(name, "y"); found {
		return stem + "ies"
	}
	return name + "s"
}

// Name returns the name of the CRD.
func (d Definition) Name() string { return d.Types[0].Ref() }

// object returns the CRD with schemas of about size bytes together, as it is before the
// server has looked at it or after.
func (d Definition) object(size int, established bool, version string) map[string]any {
	random := rand.New(rand.NewPCG(1, uint64(d.Number)))
	first := d.Types[0]
	accepted := namesOf(first)
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
		status["acceptedNames"] = accepted
		status["conditions"] = []any{
			condition("NamesAccepted", "NoConflicts", "no conflicts found"),
			condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
		}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": d.Name(), "uid": uid(random), "resourceVersion": version, "generation": 1,
			"creationTimestamp": created, "annotations": map[string]any{"controller-gen.kubebuilder.io/version": "v0.19.0"},
		},
		"spec": map[string]any{
			"group": first.GVR.Group, "names": accepted, "scope": scope, "versions": versions,
			"conversion": map[string]any{"strategy": "None"},
		},
		"status": status,
	}
}

// CRD returns the CRD with schemas of about size bytes together, as a person writes it.
func (d Definition) CRD(size int) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(d.object(size, true, ""))
	if err != nil {
		return nil, err
	}
	crd := &unstructured.Unstructured{}
	if err := crd.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	for _, field := range [][]string{
		{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"}, {"status"},
	} {
		unstructured.RemoveNestedField(crd.Object, field...)
	}
	return crd, nil
}

// created is when everything was created.
const created = "2026-03-12T09:30:00Z"

func namesOf(t Type) map[string]any {
	return map[string]any{
		"plural": t.GVR.Resource, "singular": strings.ToLower(t.GVK.Kind), "kind": t.GVK.Kind, "listKind": t.GVK.Kind + "List",
		"shortNames": t.shortNames, "categories": t.categories,
	}
}

func condition(name, reason, message string) map[string]any {
	return map[string]any{"type": name, "status": "True", "reason": reason, "message": message, "lastTransitionTime": created}
}

func uid(random *rand.Rand) string {
	a, b := random.Uint64(), random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}
