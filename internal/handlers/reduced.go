package handlers

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// reducedEvent replaces the state of e by one with only metadata.
func (s *Set) reducedEvent(e *event) {
	state := e.state()
	*state, e.reduced = s.reduced(*state), true
	if e.kind == deleted {
		e.makeUnknown()
	}
}

// makeUnknown makes the object of a deletion one whose final state is not known.
func (e *event) makeUnknown() {
	if _, unknown := e.obj.(cache.DeletedFinalStateUnknown); !unknown {
		e.obj = cache.DeletedFinalStateUnknown{Key: keyOf(e.obj), Obj: e.obj}
	}
}

// reduced returns state, an earlier state of an object, with only its apiVersion, kind and metadata, without
// managedFields. It does not write to state. What a transform has made of an object may be of a type that it returns
// as it is.
func (s *Set) reduced(state any) any {
	switch state := state.(type) {
	case cache.DeletedFinalStateUnknown:
		state.Obj = s.reduced(state.Obj)
		return state
	case *packed.Object:
		if s.Pack == nil {
			return state
		}
		return s.Pack(reducedContent(func(name string) (any, bool) { return state.Field(name) }))
	case *unstructured.Unstructured:
		return reducedContent(func(name string) (value any, found bool) {
			value, found = state.Object[name]
			return value, found
		})
	}
	return reducedStruct(state)
}

// reducedContent returns the reduced object with the values that field returns.
func reducedContent(field func(name string) (value any, found bool)) *unstructured.Unstructured {
	reduced := make(map[string]any, 3)
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if value, found := field(name); found {
			reduced[name] = value
		}
	}
	if metadata, is := reduced["metadata"].(map[string]any); is {
		metadata = maps.Clone(metadata) // it is read-only
		delete(metadata, "managedFields")
		reduced["metadata"] = metadata
	}
	return &unstructured.Unstructured{Object: reduced}
}

// reducedStruct returns a new struct of the type of state with its TypeMeta and ObjectMeta, or state if it does not point
// to a struct that has both as values.
func reducedStruct(state any) any {
	from := reflect.ValueOf(state)
	if from.Kind() != reflect.Pointer || from.IsNil() || from.Elem().Kind() != reflect.Struct {
		return state
	}
	to := reflect.New(from.Type().Elem())
	for _, field := range []struct {
		name string
		of   reflect.Type
	}{{"TypeMeta", reflect.TypeFor[metav1.TypeMeta]()}, {"ObjectMeta", reflect.TypeFor[metav1.ObjectMeta]()}} {
		found, is := from.Type().Elem().FieldByName(field.name)
		if !is || found.Type != field.of {
			return state
		}
		value, err := from.Elem().FieldByIndexErr(found.Index)
		target, unset := to.Elem().FieldByIndexErr(found.Index)
		if err != nil || unset != nil || !target.CanSet() {
			return state
		}
		if metadata, is := reflect.TypeAssert[metav1.ObjectMeta](value); is {
			metadata.ManagedFields = nil
			value = reflect.ValueOf(metadata)
		}
		target.Set(value)
	}
	return to.Interface()
}
