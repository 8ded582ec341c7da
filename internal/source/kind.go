package source

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// ErrWrongKind is the error of a response with objects of another kind than the type's. A
// reflector that knows the kind would drop the objects and only log that.
var ErrWrongKind = errors.New("the response has an object of another kind")

// ErrWrongScope is the error of a response with objects in namespaces for a type that discovery reports as cluster-scoped. The response
// is of another type, which discovery does not have yet: the objects may be in namespaces that the informer must not have, and would be
// deleted and added again when discovery has the type.
var ErrWrongScope = errors.New("the response has an object in a namespace, and the type is cluster-scoped")

// check returns an error if item is not of the type of the requests.
func (r *requests) check(item runtime.Object) error {
	if err := checkKind(r.kind, item); err != nil || !r.unscoped || item == nil {
		return err
	}
	if object, err := meta.Accessor(item); err == nil && object.GetNamespace() != "" {
		return ErrWrongScope
	}
	return nil
}

// checkAll is check for the items of a list.
func (r *requests) checkAll(list runtime.Object) error {
	if r.kind == "" && !r.unscoped {
		return nil
	}
	return meta.EachListItem(list, r.check)
}

// checkKind returns an error if item is of another kind than kind. If one of the kinds is
// empty, there is no error.
func checkKind(kind string, item runtime.Object) error {
	if kind == "" || item == nil {
		return nil
	}
	if got := item.GetObjectKind().GroupVersionKind().Kind; got != "" && got != kind {
		return errtext.Clean(fmt.Errorf("%w: the server sent a %s, not a %s", ErrWrongKind, got, kind))
	}
	return nil
}
