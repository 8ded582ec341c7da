package source

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Packing converts objects between the form of the client and the transform, and the form in which the reflector's store has them.
// Its methods are called concurrently. Objects of a type that it does not know stay as they are.
type Packing interface {
	// Pack returns object in the form of the store.
	Pack(object runtime.Object) runtime.Object
	// Unpack returns an object of the store as a copy that may be written to.
	Unpack(stored metav1.Object) metav1.Object
	// Begin begins to pack objects, if they have not been packed so far. It reports false if they have, or must not be packed.
	Begin() bool
	// Forget drops what the objects have in common. There are none.
	Forget()
	// Size returns the memory of what the objects have in common, in bytes.
	Size() int
}

// packed returns obj in the form of the store.
func (t *transform) packed(obj runtime.Object) runtime.Object {
	if t.packing == nil {
		return obj
	}
	return t.packing.Pack(obj)
}
