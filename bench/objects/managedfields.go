package objects

import (
	"encoding/json"
	"slices"
	"time"
)

// path leads to a field of an object.
type path = []string

// writer is one who wrote some fields of an object.
type writer struct {
	manager, operation, subresource string
	at                              time.Time
	owns, except                    []path
}

// keyedLists are the lists that servers merge by a key of their elements; fields of
// all others belong to somebody as a whole.
var keyedLists = map[string][]string{
	"conditions": {"type"}, "containers": {"name"}, "initContainers": {"name"}, "env": {"name"}, "volumes": {"name"},
	"volumeMounts": {"mountPath"}, "ports": {"containerPort", "protocol"}, "ownerReferences": {"uid"},
}

// wholeMaps are the maps that belong to somebody as a whole, and the lists whose
// elements do.
var wholeMaps = []string{"selector", "matchLabels", "nodeSelector", "ownerReferences"}

// managedFields returns what a server would record of writers in an object: the
// fields that the object has and nothing else.
func managedFields(obj object, writers []writer) list {
	var entries list
	for _, w := range writers {
		fields := object{}
		for _, p := range w.owns {
			if value, ok := lookUp(obj, p); ok {
				claim(fields, p, fieldsOf(p, value, w))
			}
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

func lookUp(obj object, p path) (any, bool) {
	var value any = obj
	for _, name := range p {
		fields, ok := value.(object)
		if !ok {
			return nil, false
		}
		if value, ok = fields[name]; !ok {
			return nil, false
		}
	}
	return value, true
}

// claim puts what is owned below p in its place.
func claim(fields object, p path, owned object) {
	for _, name := range p[:len(p)-1] {
		next, ok := fields["f:"+name].(object)
		if !ok {
			next = object{}
			fields["f:"+name] = next
		}
		fields = next
	}
	fields["f:"+p[len(p)-1]] = owned
}

// fieldsOf returns the set of fields of value, which is at p, that w owns.
func fieldsOf(p path, value any, w writer) object {
	fields := object{}
	switch value := value.(type) {
	case object:
		if slices.Contains(wholeMaps, p[len(p)-1]) {
			return fields
		}
		for key, below := range value {
			at := append(slices.Clone(p), key)
			if !slices.ContainsFunc(w.except, func(other path) bool { return slices.Equal(other, at) }) {
				fields["f:"+key] = fieldsOf(at, below, w)
			}
		}
	case list:
		fields = elementsOf(p, value, w)
	}
	// An apply claims the leaves only, an update the containers too.
	if len(fields) > 0 && w.operation == "Update" {
		fields["."] = object{}
	}
	return fields
}

// elementsOf returns the set of elements of a list, and of their fields. It is empty
// if the list belongs to somebody as a whole.
func elementsOf(p path, elements list, w writer) object {
	fields := object{}
	name := p[len(p)-1]
	for _, element := range elements {
		switch element := element.(type) {
		case object:
			keys, ok := keyedLists[name]
			if !ok {
				return fields
			}
			below := object{}
			if !slices.Contains(wholeMaps, name) {
				below = fieldsOf(append(slices.Clone(p), "[]"), element, w)
				below["."] = object{}
			}
			fields[elementKey(element, keys)] = below
		case string:
			if name == "finalizers" {
				fields[`v:"`+element+`"`] = object{}
			}
		}
	}
	return fields
}

// elementKey names an element of a keyed list.
func elementKey(element object, keys []string) string {
	values := object{}
	for _, key := range keys {
		if value, ok := element[key]; ok {
			values[key] = value
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic("objects: bug: a list key is not JSON: " + err.Error())
	}
	return "k:" + string(text)
}
