package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CRDs is the resource of CustomResourceDefinitions.
var CRDs = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const (
	// perGroup is the number of CRDs of a group.
	perGroup = 6
	// additional is the number of the first additional CRD.
	additional = 1_000_000
)

// The parts of the names of groups and kinds.
var (
	areas   = strings.Fields("networking storage compute monitoring security database messaging identity policy backup certificates dns registry workflow autoscaling logging tracing gateway mesh secrets")
	domains = strings.Fields("acme.io example.com fabrikam.dev northwind.cloud contoso.org")
	traits  = strings.Split(",Cluster,Remote,Managed,Shared,Virtual,Static,External,Default,Scoped,Regional,Private,Edge,Legacy,Primary", ",")
	things  = strings.Fields("Pool Route Volume Endpoint Certificate Database Queue Topic Binding Policy Schedule Snapshot Account Gateway Listener Tunnel Quota Profile Template Region")
)

// Type is one resource in one version.
type Type struct {
	GVR        schema.GroupVersionResource
	GVK        schema.GroupVersionKind
	Namespaced bool
}

// Definition is a CustomResourceDefinition, generated from its number. Its names resemble those
// of real CRDs.
type Definition struct {
	Number int
	// Types has a type for each version, the preferred version first.
	Types []Type
}

// Definitions returns the first n definitions.
func Definitions(n int) []Definition {
	all := make([]Definition, n)
	for i := range all {
		all[i] = NewDefinition(i)
	}
	return all
}

// Additional returns a definition that is not among those of Fill, in a group of its own.
func Additional(i int) Definition { return NewDefinition(additional + i) }

// NewDefinition returns the definition with number i.
func NewDefinition(i int) Definition {
	group := i / perGroup
	name := areas[group%len(areas)] + "." + domains[group/len(areas)%len(domains)] // different for each group below 600
	if i >= additional {
		name = fmt.Sprintf("additional-%d.%s", i-additional, domains[0])
	}
	kind := traits[i%len(traits)] + things[i/len(traits)%len(things)]
	plural := strings.ToLower(kind) + "s"
	if stem, found := strings.CutSuffix(plural, "ys"); found {
		plural = stem + "ies"
	}
	d := Definition{Number: i}
	for _, version := range [][]string{{"v1", "v1beta1"}, {"v1"}, {"v1alpha1"}}[i%3] {
		gv := schema.GroupVersion{Group: name, Version: version}
		d.Types = append(d.Types, Type{GVR: gv.WithResource(plural), GVK: gv.WithKind(kind), Namespaced: i%4 != 3})
	}
	return d
}

// Name returns the name of the CRD.
func (d Definition) Name() string { return d.Types[0].GVR.GroupResource().String() }

// CRD returns the CRD, with schemas of about size bytes in total.
func (d Definition) CRD(size int) *unstructured.Unstructured {
	first, s := d.Types[0], schemer{rand.New(rand.NewPCG(1, uint64(d.Number)))}
	names := map[string]any{
		"plural": first.GVR.Resource, "singular": strings.ToLower(first.GVK.Kind), "kind": first.GVK.Kind, "listKind": first.GVK.Kind + "List",
		"categories": []any{areas[d.Number/perGroup%len(areas)]},
	}
	if d.Number%2 == 0 {
		names["shortNames"] = []any{fmt.Sprintf("%s%d", strings.ToLower(first.GVK.Kind[:2]), d.Number)}
	}
	subresources := map[string]any{}
	if d.Number%5 != 4 {
		subresources["status"] = map[string]any{}
	}
	var versions []any
	for i, t := range d.Types {
		versions = append(versions, map[string]any{
			"name": t.GVR.Version, "served": true, "storage": i == 0, "subresources": subresources,
			"schema": map[string]any{"openAPIV3Schema": s.schema(size / len(d.Types))},
		})
	}
	scope := "Cluster"
	if first.Namespaced {
		scope = "Namespaced"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": CRDs.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": d.Name(), "annotations": map[string]any{"controller-gen.kubebuilder.io/version": "v0.19.0"}},
		"spec":     map[string]any{"group": first.GVR.Group, "names": names, "scope": scope, "versions": versions},
	}}
}

// Object returns object i of the type, with about 800 bytes, most of them in an annotation: servers
// drop fields that are not in the schema of the CRD.
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

// schemer makes random schemas, no two of which are equal.
type schemer struct{ *rand.Rand }

// schema returns a schema of about size bytes of JSON, most of them in descriptions of
// properties.
func (s schemer) schema(size int) map[string]any {
	properties := map[string]any{}
	for size > 0 {
		name, text := s.words(2, ""), s.words(4+s.IntN(40), " ")
		properties[name] = map[string]any{"type": []string{"integer", "boolean", "string"}[s.IntN(3)], "description": text}
		size -= len(name) + len(text) + len(`"":{"description":"","type":"boolean"},`)
	}
	return map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}}}
}

// words returns n random words.
func (s schemer) words(n int, separator string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	all := make([]string, n)
	for i := range all {
		for range 3 + s.IntN(6) {
			all[i] += string(letters[s.IntN(len(letters))])
		}
	}
	return strings.Join(all, separator)
}
