// Package gotype has the Go types of objects: [Of] describes a type T, [Converter] converts unstructured
// content to it, and [WithoutValues] makes the errors safe to display. The package does not know clients, caches and
// resources.
package gotype

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// Of is a Go type of objects: a pointer to a struct with TypeMeta and ObjectMeta. It is T, or Type if that is not nil: then the
// compiler does not know the type, and T is an interface that it implements.
type Of[T runtime.Object] struct{ Type reflect.Type }

// GoType returns the Go type.
func (of Of[T]) GoType() reflect.Type {
	if of.Type != nil {
		return of.Type
	}
	return reflect.TypeFor[T]()
}

// Check returns an error if it is not a pointer to a struct, or is the type of unstructured objects or of metadata, or
// if its metadata can't be read from an object without content: then an object of the server that lacks it would
// cause a panic.
func (of Of[T]) Check() error {
	t := of.GoType()
	switch {
	case t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct:
		return fmt.Errorf("%v is not a pointer to a struct", t)
	case t == reflect.TypeFor[*unstructured.Unstructured]() || t == reflect.TypeFor[*metav1.PartialObjectMetadata]():
		return fmt.Errorf("%v is not the Go type of a resource: use Acquire, or NewReader or NewMetadata of package lister", t)
	case of.Type != nil && !t.Implements(reflect.TypeFor[T]()):
		return fmt.Errorf("%v has no metadata", t)
	}
	return readable(of.Empty())
}

// Fits returns an error if it is a type of Kubernetes' own API and not that of gvk, whose kind may be empty: then it is not known. Other Go
// types may be those of any kind.
func (of Of[T]) Fits(gvk schema.GroupVersionKind) error { return of.Fit()(gvk) }

// Fit returns a function as Fits, for many objects.
func (of Of[T]) Fit() func(gvk schema.GroupVersionKind) error {
	kinds, _, err := scheme.Scheme.ObjectKinds(of.Empty())
	if err != nil { // it is not registered
		return func(schema.GroupVersionKind) error { return nil }
	}
	return func(gvk schema.GroupVersionKind) error {
		if gvk.Kind == "" || slices.Contains(kinds, gvk) {
			return nil
		}
		t := of.GoType().Elem()
		return fmt.Errorf("*%s.%s is not the Go type of %s %s", t.PkgPath(), t.Name(), gvk.GroupVersion(), gvk.Kind)
	}
}

// readable returns an error if the metadata of an object causes a panic.
func readable(object runtime.Object) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%T has no metadata until it is set: embed metav1.TypeMeta and metav1.ObjectMeta as values, not as pointers", object)
		}
	}()
	_ = object.GetObjectKind().GroupVersionKind()
	if meta, is := object.(metav1.Object); is {
		_ = meta.GetName()
	}
	return nil
}

// Is reports whether object has the type.
func (of Of[T]) Is(object runtime.Object) bool { return reflect.TypeOf(object) == of.GoType() }

// String returns the name of the type.
func (of Of[T]) String() string { return of.GoType().String() }

// Empty returns an object without content. Check must have returned nil.
func (of Of[T]) Empty() T { return reflect.New(of.GoType().Elem()).Interface().(T) }

// WithoutValues returns err, an error of the JSON decoder, without values of the object: errors are stored, logged
// and displayed, and the object may be a Secret. It keeps the Go field, which the decoder's own errors and those of [Unmarshal] have.
func WithoutValues(err error) error {
	const words = "json: cannot unmarshal "
	if where, is := errors.AsType[methodError](err); is {
		return where
	}
	if what, found := strings.CutPrefix(err.Error(), words); found {
		kind, _, _ := strings.Cut(what, " ") // without the digits of a number
		if _, field, found := strings.Cut(what, " into Go "); found {
			return errors.New(errtext.Cut(words + kind + " into Go " + field))
		}
	}
	return errors.New("a value does not fit the Go type of its field")
}
