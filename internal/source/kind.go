package source

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// ErrWrongKind says that a server sent objects of another kind than the type's. A
// reflector that is told the kind drops them, with no more than a line in the log.
var ErrWrongKind = errors.New("an object of another kind")

// checkKind returns an error if item is of another kind than kind. What has none, or of
// which none is known, passes.
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
