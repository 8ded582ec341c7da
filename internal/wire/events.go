package wire

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// event consumes a watch event. It returns false if the event is unusual: the
// client would not return its object as unstructured or as a struct, the event has other
// members, or type is not the first.
func (b *builder) event() (kind watch.EventType, object runtime.Object, ok bool) {
	if !b.take('{') || !b.descend() || !b.field("type") || b.next() != '"' {
		return "", nil, false
	}
	t, ok := b.text()
	if !ok {
		return "", nil, false
	}
	kind = eventKind(b.data[t.start:t.end])
	if kind == "" || !b.take(',') || !b.field("object") || b.next() != '{' {
		return "", nil, false
	}
	if b.into != nil {
		object, ok = b.into.event(b, kind)
	} else {
		object, ok = b.eventObject(kind)
	}
	return kind, object, ok && b.take('}')
}

// eventObject consumes the object of an event. It returns false if the dynamic client would not return it as
// unstructured.
func (b *builder) eventObject(kind watch.EventType) (runtime.Object, bool) {
	drop := b.drop
	if kind == watch.Bookmark { // it is small, and an annotation may mark the end of a list
		drop = nil
	}
	v, ok := b.object(root(drop))
	if !ok {
		return nil, false
	}
	fields := v.any.(map[string]any)
	gvk, ok := identity(fields)
	return &unstructured.Unstructured{Object: fields}, ok && !typed[gvk.Kind]
}

// field consumes a member's name and the colon. It returns false for another name.
func (b *builder) field(name string) bool {
	t, ok := b.key()
	return ok && string(b.data[t.start:t.end]) == name
}

// eventKind returns the constant for name, or "" if watch events have no such type.
func eventKind(name []byte) watch.EventType {
	switch string(name) {
	case string(watch.Added):
		return watch.Added
	case string(watch.Modified):
		return watch.Modified
	case string(watch.Deleted):
		return watch.Deleted
	case string(watch.Bookmark):
		return watch.Bookmark
	case string(watch.Error):
		return watch.Error
	}
	return ""
}
