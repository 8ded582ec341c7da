package lister

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
)

// path finds values in an object. The zero path finds nothing. It is used by one goroutine, as jsonpath requires.
type path struct {
	json *jsonpath.JSONPath
	// names are the names of fields with which the path begins. For a fielder, the rest reads outer, which has nothing but the value
	// at names, in inner. Both are nil if there is no rest.
	names        []string
	outer, inner map[string]any
}

// fielder is an object whose fields can be read without the others, such as a packed one. The values are those of unstructured objects.
type fielder interface {
	metav1.Object
	Field(names ...string) (value any, found bool)
}

func newPath(text string) (path, error) {
	s := scanner{text: text}
	p, err := s.path()
	if err == nil && s.at < len(text) {
		err = s.errorf("the path ends before this; a backslash escapes special characters")
	}
	return p, err
}

// split sets what find needs for a fielder. Text is the path as jsonpath parses it.
func (p *path) split(text string) {
	parsed, err := jsonpath.Parse("path", text)
	if err != nil || len(parsed.Root.Nodes) != 1 {
		return
	}
	list, is := parsed.Root.Nodes[0].(*jsonpath.ListNode)
	if !is {
		return
	}
	for _, node := range list.Nodes {
		field, is := node.(*jsonpath.FieldNode)
		if !is {
			break
		}
		p.names = append(p.names, field.Value)
	}
	if len(p.names) == len(list.Nodes) || len(p.names) == 0 {
		return
	}
	p.inner = map[string]any{}
	p.outer = p.inner
	for _, name := range slices.Backward(p.names[:len(p.names)-1]) {
		p.outer = map[string]any{name: p.outer}
	}
}

// find returns the scalar values at the path, and whether there is any value except null. Object is the content of an
// unstructured object, or a fielder.
func (p path) find(object any) (values []value, found bool) {
	if p.json == nil {
		return nil, false
	}
	if from, is := object.(fielder); is {
		at, there := from.Field(p.names...)
		switch {
		case !there || at == nil:
			return nil, false
		case len(p.names) == 0:
			object = at
		case p.inner == nil:
			if v, is := newValue(at); is {
				values = append(values, v)
			}
			return values, true
		default:
			p.inner[p.names[len(p.names)-1]] = at
			object = p.outer
		}
	}
	results, err := p.json.FindResults(object)
	if err != nil { // such as an index that the list does not have
		return nil, false
	}
	for _, result := range slices.Concat(results...) {
		if !result.IsValid() || result.Kind() == reflect.Interface && result.IsNil() {
			continue
		}
		found = true
		if v, is := newValue(result.Interface()); is {
			values = append(values, v)
		}
	}
	return values, found
}

// first returns the first value at the path, or nil.
func (p path) first(object any) *value {
	if values, _ := p.find(object); len(values) > 0 {
		return &values[0]
	}
	return nil
}
