package cluster

import (
	_ "embed"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Type is one resource in one version.
type Type struct {
	GVR        schema.GroupVersionResource
	GVK        schema.GroupVersionKind
	Namespaced bool

	shortNames, categories, verbs, subresources []string
}

// Ref names the type as a person does, without its version.
func (t Type) Ref() string { return strings.TrimSuffix(t.GVR.Resource+"."+t.GVR.Group, ".") }

// verbs by their short names in the table of what is built in.
var verbs = map[string][]string{
	"all":    {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
	"read":   {"get", "list"},
	"create": {"create"},
}

// aggregated is the group that another server serves, behind this one.
const aggregated = "metrics.k8s.io"

//go:embed builtin.txt
var builtIn string

// BuiltIn returns what every cluster serves, in the server's order.
func BuiltIn() ([]Type, error) {
	var types []Type
	for line := range strings.Lines(builtIn) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		t, err := parseType(line)
		if err != nil {
			return nil, err
		}
		types = append(types, t)
	}
	return types, nil
}

func parseType(line string) (Type, error) {
	columns := strings.Fields(line)
	if len(columns) != 8 || verbs[columns[6]] == nil {
		return Type{}, fmt.Errorf("a built-in type can't be read: %q", line)
	}
	gv, err := schema.ParseGroupVersion(columns[0])
	if err != nil {
		return Type{}, err
	}
	return Type{
		GVR: gv.WithResource(columns[2]), GVK: gv.WithKind(columns[1]), Namespaced: columns[5] == "Namespaced",
		shortNames: names(columns[3]), categories: names(columns[4]), verbs: verbs[columns[6]], subresources: names(columns[7]),
	}, nil
}

func names(column string) []string {
	if column == "-" {
		return nil
	}
	return strings.Split(column, ",")
}
