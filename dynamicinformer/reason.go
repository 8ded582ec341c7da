package dynamicinformer

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
)

// Reason says in one word why a resource is not synced. The strings are stable:
// they may be compared, counted and shown.
type Reason string

// The reasons.
const (
	// ReasonNotFound: the server serves no such resource.
	ReasonNotFound Reason = "NotFound"
	// ReasonVersionNotServed: it serves it, in other versions.
	ReasonVersionNotServed Reason = "VersionNotServed"
	// ReasonNotEstablished: its CustomResourceDefinition is there, and not served yet.
	ReasonNotEstablished Reason = "NotEstablished"
	// ReasonNamesNotAccepted: its CustomResourceDefinition is there, and has the names
	// of another.
	ReasonNamesNotAccepted Reason = "NamesNotAccepted"
	// ReasonDiscoveryFailed: the server could not be asked whether it does.
	ReasonDiscoveryFailed Reason = "DiscoveryFailed"
	// ReasonForbidden: the user may not list or watch it, or not discover.
	ReasonForbidden Reason = "Forbidden"
	// ReasonUnauthorized: the server does not accept the credentials.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonVerbNotSupported: the type can't be listed or watched by anybody.
	ReasonVerbNotSupported Reason = "VerbNotSupported"
	// ReasonConversionFailed: the CRD's conversion webhook failed.
	ReasonConversionFailed Reason = "ConversionFailed"
	// ReasonDecodeFailed: what the server sent can't be read.
	ReasonDecodeFailed Reason = "DecodeFailed"
	// ReasonUnavailable: the server did not answer, or with an error of its own.
	ReasonUnavailable Reason = "Unavailable"
	// ReasonThrottled: the server asked to wait.
	ReasonThrottled Reason = "Throttled"
	// ReasonBookmarkMissing: a watch-list stream did not end its initial events.
	ReasonBookmarkMissing Reason = "BookmarkMissing"
	// ReasonNotStarted: nobody has started the informer, or asked for it.
	ReasonNotStarted Reason = "NotStarted"
	// ReasonSyncing: nothing has failed; the list is on its way.
	ReasonSyncing Reason = "Syncing"
	// ReasonStopped: the informer ended before it had synced.
	ReasonStopped Reason = "Stopped"
)

// lasts reports whether it takes somebody to do something about it.
func (r Reason) lasts() bool {
	switch r {
	case ReasonNotFound, ReasonVersionNotServed, ReasonNamesNotAccepted, ReasonForbidden, ReasonUnauthorized,
		ReasonVerbNotSupported, ReasonNotStarted, ReasonStopped:
		return true
	}
	return false
}

// classify returns the reason that err stands for. What it does not know is
// Unavailable: it failed, and may heal.
func classify(err error) Reason {
	var notServed *discovery.NotServedError
	if waiting, is := errors.AsType[*discovery.NotEstablishedError](err); is {
		if waiting.Condition == "NamesAccepted" {
			return ReasonNamesNotAccepted
		}
		return ReasonNotEstablished
	}
	switch {
	case errors.As(err, &notServed) && len(notServed.Versions) > 0:
		return ReasonVersionNotServed
	case errors.As(err, &notServed), errors.Is(err, discovery.ErrInvalidRef):
		return ReasonNotFound
	case errors.Is(err, discovery.ErrVerbNotSupported), apierrors.IsMethodNotSupported(err):
		return ReasonVerbNotSupported
	case apierrors.IsUnauthorized(err):
		return ReasonUnauthorized
	case apierrors.IsForbidden(err):
		return ReasonForbidden
	case errors.Is(err, discovery.ErrInconclusive):
		return ReasonDiscoveryFailed
	case errors.Is(err, source.ErrBookmarkMissing):
		return ReasonBookmarkMissing
	case apierrors.IsTooManyRequests(err):
		return ReasonThrottled
	case isConversion(err):
		return ReasonConversionFailed
	case isDecode(err):
		return ReasonDecodeFailed
	case apierrors.IsNotFound(err):
		return ReasonNotFound
	}
	return ReasonUnavailable
}

// isConversion knows the API server's words for it, which are all there is: the
// status is that of any internal error.
func isConversion(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conversion webhook")
}

// isDecode knows apimachinery's errors for what it can't read, and client-go's
// words where there is only a text.
func isDecode(err error) bool {
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return false
	case errors.Is(err, source.ErrNotAList), errors.Is(err, source.ErrWrongKind), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax),
		runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err):
		return true
	}
	text := err.Error()
	for _, words := range []string{"serializer for ", "json parse error", "unexpected end of JSON", "unable to decode"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
