package typestate

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// Classify returns the reason that err stands for. What it does not know is
// Unavailable: it failed, and may heal.
func Classify(err error) status.Reason {
	var notServed *discovery.NotServedError
	if waiting, is := errors.AsType[*discovery.NotEstablishedError](err); is {
		if waiting.Condition == "NamesAccepted" {
			return status.ReasonNamesNotAccepted
		}
		return status.ReasonNotEstablished
	}
	switch {
	case errors.As(err, &notServed) && len(notServed.Versions) > 0:
		return status.ReasonVersionNotServed
	case errors.As(err, &notServed), errors.Is(err, discovery.ErrInvalidRef):
		return status.ReasonNotFound
	case errors.Is(err, discovery.ErrVerbNotSupported), apierrors.IsMethodNotSupported(err):
		return status.ReasonVerbNotSupported
	case apierrors.IsUnauthorized(err):
		return status.ReasonUnauthorized
	case apierrors.IsForbidden(err):
		return status.ReasonForbidden
	case errors.Is(err, discovery.ErrInconclusive):
		return status.ReasonDiscoveryFailed
	case errors.Is(err, source.ErrBookmarkMissing):
		return status.ReasonBookmarkMissing
	case apierrors.IsTooManyRequests(err):
		return status.ReasonThrottled
	case isConversion(err):
		return status.ReasonConversionFailed
	case isDecode(err):
		return status.ReasonDecodeFailed
	case apierrors.IsNotFound(err):
		return status.ReasonNotFound
	}
	return status.ReasonUnavailable
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
