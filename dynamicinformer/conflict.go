package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// ErrConflict is matched by every [*ConflictError].
var ErrConflict = errors.New("conflicting options")

// ConflictError reports that the requested informer exists with another value of an option.
type ConflictError struct {
	GVR schema.GroupVersionResource
	// Option is the name of the option.
	Option string
	// Have is its value in the existing informer, and Want the requested one. Functions have no
	// text: two of them differ if they were made at different times.
	Have, Want string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: %s is %s in the shared informer, not %s; use the same value, or WithSeparateInformer",
		discovery.RefOf(e.GVR), e.Option, e.Have, e.Want)
}

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// conflict returns a [*ConflictError] if two leases can't share an informer on gvr because of an
// option, or nil. Different indexers conflict only if they have the same name.
func conflict(gvr schema.GroupVersionResource, have, want *settings) error {
	for _, option := range []struct {
		name string
		a, b string
		same bool
	}{
		{want.namespaces.Option(), have.namespaces.String(), want.namespaces.String(), have.namespaces.String() == want.namespaces.String()},
		{"WithNamespace", fmt.Sprintf("%q", have.namespace), fmt.Sprintf("%q", want.namespace), have.namespace == want.namespace},
		{"WithTweakListOptions", funcText(have.tweak), funcText(want.tweak), sameFunc(have.tweak, want.tweak)},
		{"WithLabelSelector", fmt.Sprintf("%q", have.labels), fmt.Sprintf("%q", want.labels), have.labels == want.labels},
		{"WithFieldSelector", fmt.Sprintf("%q", have.fields), fmt.Sprintf("%q", want.fields), have.fields == want.fields},
		{"WithTransform", funcText(have.transform), funcText(want.transform), sameFunc(have.transform, want.transform)},
		{"WithWatchErrorHandler", funcText(have.onError), funcText(want.onError), sameFunc(have.onError, want.onError)},
		{"WithResync", have.resync.String(), want.resync.String(), max(0, have.resync) == max(0, want.resync)},
		{"WithWatchListPolicy", have.watchList.String(), want.watchList.String(), have.watchList == want.watchList},
		{"WithPageSize", fmt.Sprint(have.pageSize), fmt.Sprint(want.pageSize), have.pageSize == want.pageSize},
		{"WithPolling", have.polling.String(), want.polling.String(), have.polling == want.polling},
		{"WithStrictDecoding", fmt.Sprint(have.strict), fmt.Sprint(want.strict), have.strict == want.strict},
		{"WithPackedCache", fmt.Sprint(have.packed), fmt.Sprint(want.packed), have.packed || !want.packed},
		{"WithShard", fmt.Sprint(have.shard), fmt.Sprint(want.shard), have.shard == want.shard},
		{"WithRemovalPolicy", have.removal.String(), want.removal.String(), have.removal == want.removal},
	} {
		if !option.same {
			return &ConflictError{GVR: gvr, Option: option.name, Have: option.a, Want: option.b}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.indexers)) {
		if there, taken := have.indexers[name]; taken && !sameFunc(there, want.indexers[name]) {
			return &ConflictError{GVR: gvr, Option: "WithIndexers", Have: fmt.Sprintf("a function called %q", name), Want: "another one"}
		}
	}
	return nil
}

// sameFunc reports whether a and b are the same function or closure. Package reflect compares only
// the code, which is equal for closures that have captured different values.
func sameFunc[F any](a, b F) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a)) == *(*unsafe.Pointer)(unsafe.Pointer(&b))
}

func funcText[F any](f F) string {
	var none F
	if sameFunc(f, none) {
		return "nil"
	}
	return "a function"
}
