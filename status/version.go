package status

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

var (
	// ErrVersion is matched by every [*VersionError].
	ErrVersion = errors.New("the cache does not have the resourceVersion")
	// ErrVersionInvalid is the cause if the version can't be compared.
	ErrVersionInvalid = errors.New("a resourceVersion is a decimal number: use one that the server has returned")
	// ErrVersionLost is the cause if the server's own version is smaller. After a restore of etcd, for example, the
	// server has lost what was written at the version.
	ErrVersionLost = errors.New("the server has not reached this version: it has lost the version, as after a restore of etcd, or the version is of another server")
	// ErrSeveralVersions is the cause if the informer is on a set of namespaces.
	ErrSeveralVersions = errors.New("each namespace of a set has its own resourceVersion: use a lease on one namespace, or on all")
	// ErrTypeReplaced is the cause if another type of the same name is served now, such as that of a CRD that was
	// created again, or that of another server.
	ErrTypeReplaced = errors.New("another type of this name is served now; versions of different types can't be compared")
)

// VersionError reports that a cache does not have everything up to a resourceVersion. It unwraps to the cause: the
// end of a context, [ErrVersionInvalid], [ErrVersionLost], [ErrSeveralVersions], [ErrTypeReplaced], or a [*NotSyncedError].
type VersionError struct {
	GVR schema.GroupVersionResource
	// Want is the version that the caller has given, and Have that of the cache, which may be empty.
	Want, Have string
	Err        error
}

func (e *VersionError) Error() string {
	if errors.Is(e.Err, ErrVersionInvalid) {
		return fmt.Sprintf("%s: resourceVersion %q: %v", discovery.RefOf(e.GVR), e.Want, e.Err)
	}
	have := "has no version"
	if e.Have != "" {
		have = "is at version " + e.Have
	}
	return fmt.Sprintf("%s: the cache %s, want %s: %v", discovery.RefOf(e.GVR), have, e.Want, e.Err)
}

// Is reports whether target is ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// Unwrap returns the cause.
func (e *VersionError) Unwrap() error { return e.Err }
