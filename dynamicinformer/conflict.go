package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
)

// ErrConflict is matched by every [*ConflictError].
var ErrConflict = errors.New("conflicting options")

// ConflictError reports that the requested informer exists with another value of an option.
type ConflictError struct {
	GVR schema.GroupVersionResource
	// Option is the name of the option.
	Option string
	// Have is its value in the existing informer, and Want the requested one. A function has the text "a function"; two functions are equal only if they
	// are the same value.
	Have, Want string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: %s is %s in the shared informer, not %s; use the same value, or WithSeparateInformer",
		discovery.RefOf(e.GVR), e.Option, e.Have, e.Want)
}

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// difference is an option that two informers have with different values. They have no text yet, since a long one takes
// time, and that of a shard is the user's.
type difference struct {
	option     string
	have, want any
}

// conflict returns an option because of which two leases can't share an informer, or nil. Different indexers conflict
// only if they have the same name.
func conflict(have, want *settings) *difference {
	for _, option := range []struct {
		name string
		a, b any
		same bool
	}{
		{want.namespaces.Option(), have.namespaces, want.namespaces, have.namespaces.Equal(want.namespaces)},
		{"WithNamespace", have.namespace, want.namespace, have.namespace == want.namespace},
		{"WithTweakListOptions", have.tweak, want.tweak, sameFunc(have.tweak, want.tweak)},
		{"WithLabelSelector", have.labels, want.labels, have.labels == want.labels},
		{"WithFieldSelector", have.fields, want.fields, have.fields == want.fields},
		{"WithTransform", have.transform, want.transform, sameFunc(have.transform, want.transform)},
		{"WithWatchErrorHandler", have.onError, want.onError, sameFunc(have.onError, want.onError)},
		{"WithResync", have.resync, want.resync, max(0, have.resync) == max(0, want.resync)},
		{"WithWatchListPolicy", have.watchList, want.watchList, have.watchList == want.watchList},
		{"WithPageSize", have.pageSize, want.pageSize, have.pageSize == want.pageSize},
		{"WithPolling", have.polling, want.polling, have.polling == want.polling},
		{"WithStrictDecoding", have.strict, want.strict, have.strict == want.strict},
		{"WithPackedCache", have.packed, want.packed, have.packed || !want.packed},
		{"WithShard", have.shard, want.shard, have.shard == want.shard},
		{"WithRemovalPolicy", have.removal, want.removal, have.removal == want.removal},
	} {
		if !option.same {
			return &difference{option.name, option.a, option.b}
		}
	}
	return indexConflict(have.indexers, want.indexers)
}

// indexConflict returns an index that has another function in have than in want, or nil.
func indexConflict(have, want cache.Indexers) *difference {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if there, taken := have[name]; taken && !sameFunc(there, want[name]) {
			return &difference{"WithIndexers", plainText(fmt.Sprintf("a function called %q", name)), plainText("another one")}
		}
	}
	return nil
}

// conflictError returns the error for leases on gvr. The caller must not hold the factory's mu.
func (d *difference) conflictError(gvr schema.GroupVersionResource) error {
	return &ConflictError{GVR: gvr, Option: d.option, Have: valueText(d.have), Want: valueText(d.want)}
}

// plainText is the text of a value that is not quoted.
type plainText string

func valueText(value any) string {
	if text, is := value.(string); is {
		return strconv.Quote(text)
	}
	switch v := reflect.ValueOf(value); {
	case v.Kind() != reflect.Func:
		return fmt.Sprint(value)
	case v.IsNil():
		return "nil"
	}
	return "a function"
}

// sameFunc reports whether a and b are the same function or closure. Package reflect compares only
// the code, which is equal for closures that have captured different values.
func sameFunc[F any](a, b F) bool {
	return *(*unsafe.Pointer)(unsafe.Pointer(&a)) == *(*unsafe.Pointer)(unsafe.Pointer(&b))
}
