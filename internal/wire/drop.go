package wire

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Drop is a set of fields that are left out of decoded objects. A field is a path of
// names from the root of the object; a path does not lead through arrays. A nil Drop
// drops nothing. It must not be changed after the first decoding.
//
// The fields that identify an object are never dropped: apiVersion, kind, and name,
// namespace, uid and resourceVersion of the metadata.
type Drop struct {
	here  bool
	rest  bool // of metadata: all fields except those that are kept
	below map[string]*Drop
}

// DecodingOf returns the fields that options of package dynamicclient, an []Option of it, leave out, nil if there are none, and whether
// objects share parts. Package dynamicclient sets it during initialisation. It must not be changed later.
var DecodingOf func(options any) (*Drop, Sharing)

// kept reports whether a field of metadata is never dropped.
func kept(field string) bool {
	switch field {
	case "name", "namespace", "uid", "resourceVersion":
		return true
	}
	return false
}

// all drops a whole value.
var all = &Drop{here: true}

// Add adds the field at path. Objects are then decoded without the field that
// unstructured.RemoveNestedField would remove, except for fields that are never
// dropped. An empty path has no effect.
func (d *Drop) Add(path ...string) {
	metadata := len(path) > 0 && path[0] == "metadata"
	if metadata && len(path) > 1 && kept(path[1]) || len(path) == 1 && (path[0] == "kind" || path[0] == "apiVersion") {
		return
	}
	for _, name := range path {
		next := d.below[name]
		if next == nil {
			next = &Drop{}
			if d.below == nil {
				d.below = map[string]*Drop{}
			}
			d.below[name] = next
		}
		d = next
	}
	if metadata && len(path) == 1 {
		d.rest = true
		return
	}
	d.here = len(path) > 0
}

// remove removes the fields from a decoded object.
func (d *Drop) remove(object map[string]any) {
	if d.rest {
		maps.DeleteFunc(object, func(field string, _ any) bool { return !kept(field) })
	}
	for name, below := range d.below {
		if below.here {
			delete(object, name)
		} else if inner, ok := object[name].(map[string]any); ok {
			below.remove(inner)
		}
	}
}

// removeFrom removes the fields from an object or a list that client-go has decoded.
func (d *Drop) removeFrom(decoded runtime.Object) {
	if d == nil {
		return
	}
	switch decoded := decoded.(type) {
	case *unstructured.Unstructured:
		d.remove(decoded.Object)
	case *unstructured.UnstructuredList:
		for i := range decoded.Items {
			d.remove(decoded.Items[i].Object)
		}
	}
}

// RemoveFrom removes the fields from an object of a Go type that client-go has decoded: they become zero. The path of a field may lead
// through structs, maps and pointers. A bookmark that ends initial events keeps all fields.
func (d *Drop) RemoveFrom(object metav1.Object) {
	if d != nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		d.removeFromValue(reflect.ValueOf(object))
	}
}

// removeFromValue removes the fields from v, a pointer or an addressable value.
func (d *Drop) removeFromValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			d.removeFromValue(v.Elem())
		}
	case reflect.Interface:
		if content, is := reflect.TypeAssert[map[string]any](v); is {
			d.remove(content)
		}
	case reflect.Struct:
		d.removeFromStruct(v)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			d.removeFromMap(v)
		}
	}
}

func (d *Drop) removeFromStruct(v reflect.Value) {
	candidates := map[string][]candidate{}
	collect(candidates, v.Type(), nil)
	for name, all := range candidates {
		below := place{drop: d}.below(name)
		field := dominant(all)
		if below.drop == nil || field == nil {
			continue
		}
		at, err := v.FieldByIndexErr(field.Index) // an embedded pointer may be nil
		switch {
		case err != nil:
		case below.dropped():
			at.SetZero()
		default:
			below.drop.removeFromValue(at)
		}
	}
}

func (d *Drop) removeFromMap(v reflect.Value) {
	for name, below := range d.below {
		key := reflect.ValueOf(name).Convert(v.Type().Key())
		value := v.MapIndex(key)
		switch {
		case !value.IsValid():
		case below.here:
			v.SetMapIndex(key, reflect.Value{})
		default:
			changed := reflect.New(value.Type()).Elem()
			changed.Set(value)
			below.removeFromValue(changed)
			v.SetMapIndex(key, changed)
		}
	}
}

// place is the position of a value in an object. The zero place is any position that
// is neither the object itself nor its metadata, with nothing to drop.
type place struct {
	own  own
	drop *Drop
}

// own names the parts of an object that are never shared, because no two are equal.
type own uint8

const (
	shareable own = iota
	ownRoot
	ownMetadata
)

// root is the place of an object itself.
func root(drop *Drop) place { return place{own: ownRoot, drop: drop} }

// below returns the place of the member called name.
func (p place) below(name string) place {
	var next place
	if p.own == ownRoot && name == "metadata" {
		next.own = ownMetadata
	}
	if p.drop != nil {
		next.drop = p.drop.below[name]
		if p.drop.rest && !kept(name) {
			next.drop = all
		}
	}
	return next
}

func (p place) shareable() bool { return p.own == shareable }

func (p place) dropped() bool { return p.drop != nil && p.drop.here }
