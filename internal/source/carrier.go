package source

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// carrier wraps an object that is not a runtime.Object for the reflector.
type carrier struct {
	metav1.Object
	content any
}

var _ runtime.Object = (*carrier)(nil)

// GetObjectKind implements runtime.Object.
func (c *carrier) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. It is not called between reflector and store.
func (c *carrier) DeepCopyObject() runtime.Object { return c }

// Unwrap is the cache.TransformFunc of an informer whose source has a transform. It returns the
// transformed object.
func Unwrap(obj any) (any, error) {
	if c, is := obj.(*carrier); is {
		return c.content, nil
	}
	return obj, nil
}
