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

// checkKind returns an error if item is of another kind than kind. If one of the kinds is
// empty, there is no error.
func checkKind(kind string, item runtime.Object) error {
	if kind == "" || item == nil {
		return nil
	}
	if got := item.GetObjectKind().GroupVersionKind().Kind; got != "" && got != kind {
		return fmt.Errorf("%w: the server sent a %s, not a %s", ErrWrongKind, errtext.Cut(got), kind)
	}
	return nil
}

// checkKinds is checkKind for the items of a list.
func checkKinds(kind string, list runtime.Object) error {
	if kind == "" {
		return nil
	}
	return meta.EachListItem(list, func(item runtime.Object) error { return checkKind(kind, item) })
}
