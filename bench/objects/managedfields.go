package objects

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// path leads to a field of an object.
type path = []string

// writer is one who wrote some fields of an object.
type writer struct {
	manager, operation, subresource string
	at                              time.Time
	owns, except                    []path
}

// keyedLists are the lists that servers merge by a key of their elements. A writer owns any
// other list as a whole.
var keyedLists = map[string][]string{
	"conditions": {"type"}, "containers": {"name"}, "initContainers": {"name"}, "env": {"name"}, "volumes": {"name"},
	"volumeMounts": {"mountPath"}, "ports": {"containerPort", "protocol"}, "ownerReferences": {"uid"},
}

// atomic are the maps that a writer owns as a whole, and the lists whose elements it does.
var atomic = []string{"selector", "matchLabels", "nodeSelector", "ownerReferences", "sequenceNumberForAllocation"}

// managedFields returns what a server would record of writers in an object: the fields that the
// object has and nothing else.
func managedFields(obj object, writers []writer) list {
	var entries list
	for _, w := range writers {
		fields := object{}
		for _, p := range w.owns {
			value, found, _ := unstructured.NestedFieldNoCopy(obj, p...)
			if !found {
				continue
			}
			at := make(path, len(p))
			for i := range p {
				at[i] = "f:" + p[i]
			}
			_ = unstructured.SetNestedMap(fields, w.fieldsOf(p, value), at...) // all of them are maps
		}
		if len(fields) == 0 {
			continue
		}
		entry := object{
			"apiVersion": obj["apiVersion"], "fieldsType": "FieldsV1", "fieldsV1": fields,
			"manager": w.manager, "operation": w.operation, "time": timestamp(w.at),
		}
		if w.subresource != "" {
			entry["subresource"] = w.subresource
		}
		entries = append(entries, entry)
	}
	return entries
}

// fieldsOf returns the set of fields of value, which is at p, that w owns.
func (w writer) fieldsOf(p path, value any) object {
	fields, name := object{}, p[len(p)-1]
	switch value := value.(type) {
	case object:
		if slices.Contains(atomic, name) {
			return fields
		}
		for key, below := range value {
			at := append(slices.Clone(p), key)
			if !slices.ContainsFunc(w.except, func(other path) bool { return slices.Equal(other, at) }) {
				fields["f:"+key] = w.fieldsOf(at, below)
			}
		}
	case list:
		for _, element := range value {
			key := elementKey(name, element)
			if key == "" { // w owns the list as a whole
				continue
			}
			below := object{}
			if _, ok := element.(object); ok && !slices.Contains(atomic, name) {
				below = w.fieldsOf(append(slices.Clone(p), "[]"), element)
				below["."] = object{}
			}
			fields[key] = below
		}
	}
	// An apply claims the leaves only, an update the containers too.
	if len(fields) > 0 && w.operation == "Update" {
		fields["."] = object{}
	}
	return fields
}

// elementKey names an element of the list with this name. It is empty if a writer owns the list
// as a whole.
func elementKey(name string, element any) string {
	switch element := element.(type) {
	case string:
		if name == "finalizers" {
			return `v:"` + element + `"`
		}
	case object:
		values := object{}
		for _, key := range keyedLists[name] {
			if value, ok := element[key]; ok {
				values[key] = value
			}
		}
		if len(values) > 0 {
			text, _ := json.Marshal(values) // strings and numbers
			return "k:" + string(text)
		}
	}
	return ""
}
