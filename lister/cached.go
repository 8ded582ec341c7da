package lister

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/internal/objectlister"
)

// AllCached returns an iterator as [Reader.All] does, but over the objects as they are cached, in all forms: those of a packed cache
// are *packed.Object, which are not unpacked. With an object of another type than T, the iterator returns an error and goes on.
// WithCopies has no effect.
func AllCached[T runtime.Object](r *Reader, namespace string, selector labels.Selector) iter.Seq2[T, error] {
	return all(r, namespace, selector, objectlister.Cached[T](&r.objects).Object)
}

// GetCached returns an object as [Reader.Get] does, but as it is cached: an object of a packed cache is a *packed.Object, which is not
// unpacked. An object of another type than T is an error. WithCopies has no effect.
func GetCached[T runtime.Object](r *Reader, name string) (T, error) {
	return get(r, objectlister.Cached[T](&r.objects), name, name)
}
