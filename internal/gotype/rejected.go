package gotype

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// rejected returns an error with the field whose type rejects its value by a method of its own, such as that of metav1.Duration; nil if there is
// none. JSON was not decoded to a t. The decoder's error has no field then. As the decoder's errors, it has no key of a map.
func rejected(data []byte, t reflect.Type) error {
	var content any
	if utiljson.Unmarshal(data, &content) != nil {
		return nil
	}
	path, by := rejectedIn(content, t)
	if by == nil {
		return nil
	}
	return methodError{fmt.Errorf("the value of %s does not fit its Go type %v", path, by)}
}

// rejectedIn returns the path to the first such value in content, and the type of its field; nil if there is none.
func rejectedIn(content any, t reflect.Type) (path string, by reflect.Type) {
	if itself, _ := decodesItself(t); itself {
		data, err := json.Marshal(content)
		if err != nil || recovered(func() error { return utiljson.Unmarshal(data, reflect.New(t).Interface()) }) == nil {
			return "", nil
		}
		return "", t
	}
	switch t.Kind() {
	case reflect.Pointer:
		if content != nil {
			return rejectedIn(content, t.Elem())
		}
	case reflect.Slice, reflect.Array:
		items, _ := content.([]any)
		for i, item := range items {
			if path, by := rejectedIn(item, t.Elem()); by != nil {
				return fmt.Sprintf("[%d]%s", i, path), by
			}
		}
	case reflect.Map:
		members, _ := content.(map[string]any)
		for _, member := range members {
			if path, by := rejectedIn(member, t.Elem()); by != nil {
				return "[*]" + path, by
			}
		}
	case reflect.Struct:
		if members, is := content.(map[string]any); is {
			return rejectedField(members, t)
		}
	}
	return "", nil
}

// rejectedField is rejectedIn for a struct.
func rejectedField(members map[string]any, t reflect.Type) (path string, by reflect.Type) {
	for field := range t.Fields() {
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if field.Anonymous && name == "" { // its fields are those of t, and its methods are not called
			if field.Type.Kind() == reflect.Struct {
				if path, by := rejectedField(members, field.Type); by != nil {
					return path, by
				}
			}
			continue
		}
		name = cmp.Or(name, field.Name)
		value, has := members[name]
		if !has || tag == "-" || !field.IsExported() {
			continue
		}
		if path, by := rejectedIn(value, field.Type); by != nil {
			return "." + name + path, by
		}
	}
	return "", nil
}
