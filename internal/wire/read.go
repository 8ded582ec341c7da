package wire

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Read consumes the object at the scanner's position, and makes an object of it, without the fields of drop. It is the
// form of a dynamic client: [Take] returns the objects of its lists. If the object has neither kind nor apiVersion, it
// gets those of missing. Read returns false for an object that is not ordinary: client-go's decoder must decode the
// response. It may be called concurrently.
type Read func(from *Scanner, drop *Drop, missing metav1.TypeMeta) (object runtime.Object, ok bool)

// event implements Form. It returns false for an object that the dynamic client would not return as
// unstructured. A bookmark is unstructured: no cache keeps it.
func (r Read) event(b *builder, kind watch.EventType) (runtime.Object, bool) {
	if kind == watch.Bookmark {
		return b.eventObject(kind)
	}
	object, ok := r.object(b, metav1.TypeMeta{})
	if !ok {
		return nil, false
	}
	gvk := object.GetObjectKind().GroupVersionKind()
	return object, gvk.Kind != "" && gvk.Version != "" && !typed[gvk.Kind]
}

// item implements Form. API servers send the items of custom resources before the kind of the list: then it returns false for
// an item without a kind and an apiVersion of its own.
func (r Read) item(b *builder, list metav1.TypeMeta) (runtime.Object, bool) {
	missing := metav1.TypeMeta{APIVersion: list.APIVersion, Kind: itemKind(list.Kind)}
	if missing.Kind != "" && missing.Kind != list.Kind && missing.APIVersion != "" {
		return r.object(b, missing)
	}
	object, ok := r.object(b, metav1.TypeMeta{})
	if !ok {
		return nil, false
	}
	version, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return object, version != "" && kind != ""
}

func (r Read) object(b *builder, missing metav1.TypeMeta) (runtime.Object, bool) {
	if b.next() != '{' {
		return nil, false
	}
	b.scan.scanner = b.scanner
	object, ok := r(&b.scan, b.drop, missing)
	b.scanner = b.scan.scanner
	return object, ok
}

// itemsMember is the name of the member of a list's content that has its items, if they are not unstructured.
const itemsMember = "\x00items"

// itemsInForm consumes the items of a list whose objects have the form of the settings. Again reports whether
// there is a first one.
func (b *builder) itemsInForm(list *unstructured.UnstructuredList, again bool) (ok bool) {
	version, _ := list.Object["apiVersion"].(string)
	kind, _ := list.Object["kind"].(string)
	found := []runtime.Object{}
	for ok = true; again && ok; {
		object, read := b.into.item(b, metav1.TypeMeta{APIVersion: version, Kind: kind})
		if !read {
			return false
		}
		found = append(found, object)
		again, ok = b.more(']')
	}
	b.ascend()
	list.Object[itemsMember] = found
	return ok
}

// Take returns the items of a list of a client with a [Read], and removes them from it. It returns false if the items are
// unstructured, because the response was not ordinary.
func Take(list *unstructured.UnstructuredList) (items []runtime.Object, ok bool) {
	if items, ok = list.Object[itemsMember].([]runtime.Object); ok {
		delete(list.Object, itemsMember)
	}
	return items, ok
}

var _, _ Form = (*Struct)(nil), Read(nil)
