package source

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// moved is an object that the reflector deletes although the server has it: it has left the source by configuration.
type moved struct {
	metav1.Object
	content any
}

var _ runtime.Object = (*moved)(nil)

// GetObjectKind implements runtime.Object.
func (m *moved) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. It is not called between reflector and store.
func (m *moved) DeepCopyObject() runtime.Object { return m }

// newMoved returns the object of a deletion as one that has left the source.
func newMoved(object runtime.Object) runtime.Object {
	accessor, is := object.(metav1.Object)
	if !is {
		return object
	}
	if c, is := object.(*carrier); is {
		return &moved{accessor, c.content}
	}
	return &moved{accessor, object}
}

// Moved reports whether obj, which an informer's handlers get as deleted, has left the source by configuration, and
// returns the object.
func Moved(obj any) (object any, is bool) {
	m, is := obj.(*moved)
	if !is {
		return obj, false
	}
	return m.content, true
}

// leftBy returns the keys of the objects that exist, but whose namespaces have left the set, or whose slots the shard. A type
// that was replaced has none.
func (s *resumableWatch) leftBy(content listed, t Type) map[string]bool {
	if s.replaced(t) {
		return nil
	}
	left := map[string]bool{}
	if content.view != nil {
		for _, key := range s.known.keysOf(metav1.NamespaceAll, content.view.Slots.Complement()) {
			left[key] = true
		}
	}
	if content.positions == nil {
		return left
	}
	for _, namespace := range s.known.namespaces() {
		if _, is := content.positions[namespace]; is || s.cfg.Namespaces.isGone(namespace) {
			continue
		}
		for _, key := range s.known.keysIn(namespace) {
			left[key] = true
		}
	}
	return left
}

// vacate deletes the objects of namespaces that have left the set, after a list of t that has failed in all others. It reports false if
// the watch of the reflector ends. Objects of a type that was replaced wait for a list.
func (s *resumableWatch) vacate(ctx context.Context, t Type) bool {
	set := s.set(t)
	if set == nil || s.replaced(t) {
		return true
	}
	names, _ := set.Current()
	wanted := keySet(names)
	for _, name := range s.known.namespaces() {
		if !wanted[name] && !s.passPart(ctx, &part{namespace: name, removed: true, gone: set.isGone(name), passed: make(chan error, 1)}) {
			return false
		}
	}
	forgetGone(set, wanted)
	return true
}
