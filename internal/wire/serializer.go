package wire

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serializer decodes objects and lists. client-go's serializer encodes, and decodes
// unusual input.
type serializer struct {
	runtime.Serializer
	settings *Settings
	bypass   *bypass // nil: not of a stream
}

// Decode has client-go's contract. The result does not refer to data.
func (s *serializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if object := s.bypass.take(data); object != nil {
		gvk := object.GetObjectKind().GroupVersionKind()
		return object, &gvk, nil
	}
	if defaults == nil {
		if object, gvk, ok := s.decode(data, into); ok {
			return object, &gvk, nil
		}
	}
	return s.Serializer.Decode(data, defaults, into)
}

// decode decodes ordinary input. It changes into only if it succeeds.
func (s *serializer) decode(data []byte, into runtime.Object) (runtime.Object, schema.GroupVersionKind, bool) {
	if s.leaves(into) {
		return nil, schema.GroupVersionKind{}, false
	}
	switch into := into.(type) {
	case nil:
		if object, gvk, ok := s.object(data); ok && !typed[gvk.Kind] {
			return &unstructured.Unstructured{Object: object}, gvk, true
		}
	case *unstructured.Unstructured:
		if object, gvk, ok := s.object(data); ok && into != nil {
			into.Object = object
			return into, gvk, true
		}
	case *unstructured.UnstructuredList:
		// client-go's decoder keeps the fields that a list already has.
		if into == nil || into.Object != nil {
			break
		}
		if list, gvk, ok := s.list(data); ok {
			*into = list
			return into, gvk, true
		}
	}
	return nil, schema.GroupVersionKind{}, false
}

// leaves reports whether input for into is left to client-go's serializer.
func (s *serializer) leaves(into runtime.Object) bool {
	switch list, is := into.(*unstructured.UnstructuredList); {
	case into == nil && s.settings.Drop != nil: // it may be a bookmark, which keeps all fields
		return true
	case s.settings.Into == nil:
		return false
	default: // events do not come here, and Settings.List decodes the lists of a Struct
		_, reads := s.settings.Into.(Read)
		return !reads || !is || list == nil
	}
}

func (s *serializer) object(data []byte) (object map[string]any, gvk schema.GroupVersionKind, ok bool) {
	ok = s.settings.decode(data, func(b *builder) (ok bool) {
		if object, ok = b.document(); ok {
			gvk, ok = identity(object)
		}
		return ok
	})
	return object, gvk, ok
}

func (s *serializer) list(data []byte) (list unstructured.UnstructuredList, gvk schema.GroupVersionKind, ok bool) {
	ok = s.settings.decode(data, func(b *builder) (ok bool) {
		if ok = b.list(&list); ok {
			gvk, ok = identity(list.Object)
		}
		return ok
	})
	return list, gvk, ok
}

// itemKind returns the kind of the items of a list of kind listKind.
func itemKind(listKind string) string { return strings.TrimSuffix(listKind, "List") }

// typed has the kinds that client-go's dynamic client decodes into structs, some in
// one group only. Objects of these kinds are left to client-go in all groups.
var typed = func() map[string]bool {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	kinds := map[string]bool{}
	for gvk := range scheme.AllKnownTypes() {
		kinds[gvk.Kind] = true
	}
	return kinds
}()
