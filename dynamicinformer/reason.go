package dynamicinformer

import "github.com/gvrkit/gvrkit/status"

// The names of package status, for users of this one.
type (
	// Reason says in one word why an informer is not synced.
	Reason = status.Reason
	// State is what an informer is doing.
	State = status.State
	// NotSyncedError says why an informer has not synced.
	NotSyncedError = status.NotSyncedError
)

// ErrNotSynced is matched by every [*NotSyncedError].
var ErrNotSynced = status.ErrNotSynced

// The reasons; see package status.
const (
	ReasonNotFound         = status.ReasonNotFound
	ReasonVersionNotServed = status.ReasonVersionNotServed
	ReasonNotEstablished   = status.ReasonNotEstablished
	ReasonNamesNotAccepted = status.ReasonNamesNotAccepted
	ReasonDiscoveryFailed  = status.ReasonDiscoveryFailed
	ReasonForbidden        = status.ReasonForbidden
	ReasonUnauthorized     = status.ReasonUnauthorized
	ReasonVerbNotSupported = status.ReasonVerbNotSupported
	ReasonTransformFailed  = status.ReasonTransformFailed
	ReasonIndexFailed      = status.ReasonIndexFailed
	ReasonConversionFailed = status.ReasonConversionFailed
	ReasonDecodeFailed     = status.ReasonDecodeFailed
	ReasonBadRequest       = status.ReasonBadRequest
	ReasonTLS              = status.ReasonTLS
	ReasonUnavailable      = status.ReasonUnavailable
	ReasonThrottled        = status.ReasonThrottled
	ReasonBookmarkMissing  = status.ReasonBookmarkMissing
	ReasonNotStarted       = status.ReasonNotStarted
	ReasonSyncing          = status.ReasonSyncing
	ReasonStopped          = status.ReasonStopped
)

// The states; see package status.
const (
	StateUnknown   = status.StateUnknown
	StateNotServed = status.StateNotServed
	StateStarting  = status.StateStarting
	StateSynced    = status.StateSynced
	StateDegraded  = status.StateDegraded
	StateStopped   = status.StateStopped
)
