package wire

import (
	"reflect"
	"slices"

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
	rest  bool             // all members that are not in below
	below map[string]*Drop // by the names of members; nil: nothing of the member
}

// DecodingOf returns the fields that options of package dynamicclient, an []Option of it, leave out, nil if there are none, and whether
// objects share parts. Package dynamicclient sets it during initialisation. It must not be changed later.
var DecodingOf func(options any) (*Drop, Sharing)

// identifying has the fields of metadata that are never dropped.
var identifying = []string{"name", "namespace", "uid", "resourceVersion"}

// exceptIdentity drops all metadata, except the fields that are never dropped.
func exceptIdentity() *Drop {
	d := &Drop{rest: true, below: map[string]*Drop{}}
	for _, field := range identifying {
		d.below[field] = nil
	}
	return d
}

// all drops a whole value.
var all = &Drop{here: true}

// Keep adds all fields, except those at the paths, those below them, and those that are never dropped. A value on a path that is not an object, such
// as an array, is kept as a whole. Empty paths have no effect. Keep must be called before Add.
func (d *Drop) Keep(paths ...[]string) {
	d.rest, d.below = true, map[string]*Drop{"apiVersion": nil, "kind": nil, "metadata": exceptIdentity()}
	for _, path := range paths {
		d.keep(path)
	}
}

func (d *Drop) keep(path []string) {
	for i, name := range path {
		next, known := d.below[name]
		switch {
		case known && next == nil: // it is kept already
			return
		case i == len(path)-1:
			d.below[name] = nil
		case !known:
			next = &Drop{rest: true, below: map[string]*Drop{}}
			d.below[name] = next
		}
		d = next
	}
}

// Add adds the field at path. Objects are then decoded without the field that
// unstructured.RemoveNestedField would remove, except for fields that are never
// dropped. An empty path has no effect.
func (d *Drop) Add(path ...string) {
	metadata := len(path) > 0 && path[0] == "metadata"
	if metadata && len(path) > 1 && slices.Contains(identifying, path[1]) || len(path) == 1 && (path[0] == "kind" || path[0] == "apiVersion") {
		return
	}
	for _, name := range path {
		next, known := d.below[name]
		if !known && d.rest {
			return
		}
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
		*d = *exceptIdentity()
		return
	}
	d.here = len(path) > 0
}

// remove removes the fields from a decoded object.
func (d *Drop) remove(object map[string]any) {
	for name, value := range object {
		if below := d.at(name); below == nil {
			continue
		} else if below.here {
			delete(object, name)
		} else if inner, is := value.(map[string]any); is {
			below.remove(inner)
		}
	}
}

// at returns what is left out of the member called name; nil: nothing.
func (d *Drop) at(name string) *Drop {
	below, known := d.below[name]
	if !known && d.rest {
		return all
	}
	return below
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
	if to := reflect.PointerTo(v.Type()); d.rest && (to.Implements(unmarshaler) || to.Implements(textUnmarshaler)) {
		return // its fields may have other names than those of the JSON
	}
	candidates := map[string][]candidate{}
	collect(candidates, v.Type(), nil)
	for name, all := range candidates {
		below, field := d.at(name), dominant(all)
		if below == nil || field == nil {
			continue
		}
		at, err := v.FieldByIndexErr(field.Index) // an embedded pointer may be nil
		switch {
		case err != nil:
		case below.here:
			at.SetZero()
		default:
			below.removeFromValue(at)
		}
	}
}

func (d *Drop) removeFromMap(v reflect.Value) {
	for _, key := range v.MapKeys() {
		switch below := d.at(key.String()); {
		case below == nil:
		case below.here:
			v.SetMapIndex(key, reflect.Value{})
		default:
			changed := reflect.New(v.Type().Elem()).Elem()
			changed.Set(v.MapIndex(key))
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
		next.drop = p.drop.at(name)
	}
	return next
}

func (p place) shareable() bool { return p.own == shareable }

func (p place) dropped() bool { return p.drop != nil && p.drop.here }
