package objects

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// path is the path of a field in an object.
type path = []string

// writer is a field manager, with the paths of the fields that it owns.
type writer struct {
	manager, operation, subresource string
	at                              time.Time
	owns, except                    []path
}

// keyedLists has the keys of lists whose elements servers merge by key. A writer owns each
// other list as a whole.
var keyedLists = map[string][]string{
	"conditions": {"type"}, "containers": {"name"}, "initContainers": {"name"}, "env": {"name"}, "volumes": {"name"},
	"volumeMounts": {"mountPath"}, "ports": {"containerPort", "protocol"}, "ownerReferences": {"uid"},
}

// atomic has the maps that a writer owns as a whole, and the lists whose elements it owns as a
// whole.
var atomic = []string{"selector", "matchLabels", "nodeSelector", "ownerReferences", "sequenceNumberForAllocation"}

// managedFields returns the managedFields of an object with these writers, as a server records
// them. It has only fields that the object has.
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
			_ = unstructured.SetNestedMap(fields, w.fieldsOf(p, value), at...) // all values are maps
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
	// An apply owns only the leaves, and an update also the containers.
	if len(fields) > 0 && w.operation == "Update" {
		fields["."] = object{}
	}
	return fields
}

// elementKey returns the key of an element of the list called name, or "" if a writer owns the
// list as a whole.
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
