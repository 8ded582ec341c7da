package objectsize

import (
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shape is what the walk needs to know of a Go type.
type shape struct {
	of           reflect.Type
	kind         reflect.Kind
	size         int    // of a value
	alone        int    // of an allocation of one value
	refers       bool   // values may refer to other memory
	key, element *shape // of a map; element also of a pointer, slice or array
	// fields are those of a struct that may refer to other memory. Unexported ones are left out: they may be guarded by a lock, and are not the
	// content of an object.
	fields     []structField
	isMetadata bool // the type is metav1.ObjectMeta
}

type structField struct {
	index int
	shape *shape
}

var shapes sync.Map // of *shape by reflect.Type

// shapeOf returns the shape of t.
func shapeOf(t reflect.Type) *shape {
	if known, is := shapes.Load(t); is {
		return known.(*shape)
	}
	made := map[reflect.Type]*shape{}
	s := makeShape(t, made)
	for t, s := range made {
		shapes.LoadOrStore(t, s)
	}
	return s
}

// makeShape returns the shape of t, and adds it to made with those of the types to which t refers.
func makeShape(t reflect.Type, made map[reflect.Type]*shape) *shape {
	if s := made[t]; s != nil {
		return s // a type may refer to itself: its shape is not complete yet
	}
	s := &shape{of: t, kind: t.Kind(), size: int(t.Size()), refers: refers(t)}
	made[t] = s
	s.alone = withoutPointers(s.size)
	if s.refers {
		s.alone = withPointers(s.size)
	}
	switch s.kind {
	case reflect.Map:
		s.key = makeShape(t.Key(), made)
		s.element = makeShape(t.Elem(), made)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		s.element = makeShape(t.Elem(), made)
	case reflect.Struct:
		s.isMetadata = t == reflect.TypeFor[metav1.ObjectMeta]()
		for field := range t.Fields() {
			if s.refers && field.IsExported() && refers(field.Type) {
				s.fields = append(s.fields, structField{field.Index[0], makeShape(field.Type, made)})
			}
		}
	}
	return s
}

// follower returns room for one value after another, or the zero Value if such values refer to nothing.
func (s *shape) follower() reflect.Value {
	if !s.refers {
		return reflect.Value{}
	}
	return reflect.New(s.of).Elem()
}

// refers reports whether values of t may refer to other memory. The location of a time is shared.
func refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		return true
	case reflect.Array:
		return t.Len() > 0 && refers(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return false
		}
		for field := range t.Fields() {
			if refers(field.Type) {
				return true
			}
		}
	}
	return false
}
