package lister

import (
	"iter"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/internal/objectlister"
)

// AllCached is [Reader.All] for the objects as they are cached: the objects of a packed cache are *packed.Object, and are not
// unpacked. For an object of another type than T, the iterator returns an error and continues. WithCopies has no effect.
func AllCached[T runtime.Object](r *Reader, namespace string, selector labels.Selector) iter.Seq2[T, error] {
	return all(r, namespace, selector, objectlister.Cached[T](&r.objects).Object)
}

// GetCached is [Reader.Get] for the object as it is cached: an object of a packed cache is a *packed.Object, and is not
// unpacked. An object of another type than T is an error. WithCopies has no effect.
func GetCached[T runtime.Object](r *Reader, name string) (T, error) {
	return get(r, objectlister.Cached[T](&r.objects), name, name)
}
