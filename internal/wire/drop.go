package wire

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Drop is a set of fields that are left out of objects, as paths of names from the
// object down. The names are those of objects in objects: a path does not go
// through arrays. Nil drops nothing. It is read-only once it is in use.
//
// What tells one object from another is never dropped: apiVersion, kind, and of the
// metadata name, namespace, uid and resourceVersion.
type Drop struct {
	here  bool
	rest  bool // of metadata: all fields but those that are kept
	below map[string]*Drop
}

// kept reports whether metadata's field is never dropped.
func kept(field string) bool {
	switch field {
	case "name", "namespace", "uid", "resourceVersion":
		return true
	}
	return false
}

// all drops the value that it is for.
var all = &Drop{here: true}

// Add adds the field at path. It is what unstructured.RemoveNestedField would
// remove, but for what is never dropped. An empty path is none.
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

// remove drops the fields from an object that has them.
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

// removeFrom drops the fields from what client-go's decoder returned.
func (d *Drop) removeFrom(decoded runtime.Object) {
	if d == nil {
		return
	}
	switch decoded := decoded.(type) {
	case *unstructured.Unstructured:
		if !endsInitialEvents(decoded) {
			d.remove(decoded.Object)
		}
	case *unstructured.UnstructuredList:
		for i := range decoded.Items {
			d.remove(decoded.Items[i].Object)
		}
	}
}

// endsInitialEvents reports whether object is the bookmark at the end of a list, of which
// nothing is dropped.
func endsInitialEvents(object *unstructured.Unstructured) bool {
	mark, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "annotations", metav1.InitialEventsAnnotationKey)
	return mark == "true"
}

// place is where in an object a value stands. The zero place is anywhere below
// an object's metadata, or beside it, with nothing to drop.
type place struct {
	own  own
	drop *Drop
}

// own says which parts of an object are never shared, since no two are equal.
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
