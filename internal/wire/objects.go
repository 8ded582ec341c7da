package wire

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// document consumes all of data, which must be one object.
func (b *builder) document() (map[string]any, bool) {
	if b.next() != '{' {
		return nil, false
	}
	v, ok := b.object(root(b.drop))
	if !ok || !b.done() {
		return nil, false
	}
	return v.any.(map[string]any), true
}

// list consumes all of data, which must be one list, and decodes each item as an
// object. It returns false for a document without items.
func (b *builder) list(into *unstructured.UnstructuredList) bool {
	if b.next() != '{' {
		return false
	}
	b.pos++
	if !b.descend() {
		return false
	}
	into.Object = map[string]any{}
	again, ok := !b.take('}'), true
	for again {
		name, _, ok := b.name()
		if !ok || misspelt(name) {
			return false
		}
		if !b.listMember(into, name) {
			return false
		}
		if again, ok = b.more('}'); !ok {
			return false
		}
	}
	b.ascend()
	if !ok || into.Items == nil || !b.done() {
		return false
	}
	b.completeItems(into)
	return true
}

// listMember consumes the value of a member of a list.
func (b *builder) listMember(into *unstructured.UnstructuredList, name string) bool {
	switch {
	case name == "items":
		return b.items(into)
	case b.into == nil:
	case name == itemsMember:
		return false // the items are under that name
	case into.Items != nil && into.Object[name] != nil && (name == "kind" || name == "apiVersion"):
		return false // the items may have the earlier one
	}
	v, ok := b.value(place{own: ownMetadata})
	into.Object[name] = v.any
	return ok && fits(name, v.any)
}

// items consumes the items of a list. Each must be an object.
func (b *builder) items(into *unstructured.UnstructuredList) bool {
	if b.next() != '[' {
		return false
	}
	b.pos++
	if !b.descend() {
		return false
	}
	into.Items = []unstructured.Unstructured{}
	again, ok := !b.take(']'), true
	if b.into != nil {
		return b.itemsInForm(into, again)
	}
	for again {
		if b.next() != '{' {
			return false
		}
		v, ok := b.object(root(b.drop))
		if !ok {
			return false
		}
		into.Items = append(into.Items, unstructured.Unstructured{Object: v.any.(map[string]any)})
		if again, ok = b.more(']'); !ok {
			return false
		}
	}
	b.ascend()
	return ok
}

// completeItems sets kind and apiVersion of items that have neither: API servers omit
// both in lists of built-in types.
func (b *builder) completeItems(list *unstructured.UnstructuredList) {
	version, kind := list.GetAPIVersion(), itemKind(list.GetKind())
	for i := range list.Items {
		item := &list.Items[i]
		if item.GetKind() == "" && item.GetAPIVersion() == "" {
			item.SetKind(kind)
			item.SetAPIVersion(version)
		}
	}
}

// identity returns the kind of an object or a list. It returns false for an object
// that is left to client-go's decoder, because its kind or version is missing or
// invalid.
func identity(object map[string]any) (schema.GroupVersionKind, bool) {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || kind == "" || gv.Version == "" {
		return schema.GroupVersionKind{}, false
	}
	return gv.WithKind(kind), true
}
