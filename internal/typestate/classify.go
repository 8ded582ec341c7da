package typestate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// Classify returns the reason for err. For an unknown error, it returns
// ReasonUnavailable, which is not a lasting reason.
func Classify(err error) status.Reason { //nolint:gocyclo // a table of errors
	var notServed *discovery.NotServedError
	if waiting, is := errors.AsType[*discovery.NotEstablishedError](err); is {
		if waiting.Condition == "NamesAccepted" {
			return status.ReasonNamesNotAccepted
		}
		return status.ReasonNotEstablished
	}
	if _, over := errors.AsType[*budget.OverError](err); over {
		return status.ReasonOverBudget
	}
	if _, rewound := errors.AsType[*source.RewoundError](err); rewound {
		return status.ReasonRewound
	}
	switch {
	case isTLS(err):
		return status.ReasonTLS
	case errors.As(err, &notServed) && len(notServed.Versions) > 0:
		return status.ReasonVersionNotServed
	case errors.As(err, &notServed):
		return status.ReasonNotFound
	case errors.Is(err, discovery.ErrVerbNotSupported), apierrors.IsMethodNotSupported(err):
		return status.ReasonVerbNotSupported
	case apierrors.IsUnauthorized(err), lacksCredentials(err):
		return status.ReasonUnauthorized
	case apierrors.IsForbidden(err):
		return status.ReasonForbidden
	case errors.Is(err, discovery.ErrAmbiguous):
		return status.ReasonAmbiguous
	case errors.Is(err, discovery.ErrInconclusive):
		return status.ReasonDiscoveryFailed
	case errors.Is(err, source.ErrInvalid), errors.Is(err, discovery.ErrInvalidRef), apierrors.IsBadRequest(err):
		return status.ReasonBadRequest
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

// isTLS reports whether there is no secure connection, or only one side uses HTTPS. An HTTPS
// server responds to a plain HTTP request with 400 and these words.
func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		header       tls.RecordHeaderError
		alert        tls.AlertError // of QUIC
	)
	switch {
	case err == nil:
		return false
	case errors.As(err, &verification), errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid),
		errors.As(err, &header), errors.As(err, &alert), isRejection(err), errors.Is(err, http.ErrSchemeMismatch):
		return true
	}
	const words = "HTTP request to an HTTPS server"
	if refused, is := errors.AsType[*apierrors.StatusError](err); is && apierrors.IsBadRequest(err) {
		for _, cause := range causesOf(refused) {
			if strings.Contains(cause.Message, words) {
				return true
			}
		}
		return strings.Contains(refused.ErrStatus.Message, words)
	}
	return false
}

// isRejection reports whether err is an alert with which the server rejects the client, for example for its certificate. The type of an alert is
// not exported; the operation of its error has no other cause. An internal error of the server may end soon.
func isRejection(err error) bool {
	alert, is := errors.AsType[*net.OpError](err)
	return is && alert.Op == "remote error" && alert.Err.Error() != "tls: internal error"
}

func causesOf(err *apierrors.StatusError) []metav1.StatusCause {
	if err.ErrStatus.Details == nil {
		return nil
	}
	return err.ErrStatus.Details.Causes
}

// lacksCredentials checks for client-go's words: the exec plugin has returned no credentials, and no request was sent.
func lacksCredentials(err error) bool {
	failed, is := errors.AsType[*url.Error](err)
	return is && strings.HasPrefix(failed.Err.Error(), "getting credentials: ")
}

// isConversion checks for the API server's words: the status code and reason are
// those of any internal error.
func isConversion(err error) bool {
	return err != nil && strings.Contains(err.Error(), "conversion webhook")
}

// isDecode checks for apimachinery's decoding errors, and for client-go's words if
// the error has only a text. A connection that breaks amid a response is no such error.
func isDecode(err error) bool {
	var (
		syntax   *json.SyntaxError
		mismatch *json.UnmarshalTypeError
	)
	switch {
	case err == nil, strings.Contains(err.Error(), "error when reading response body"), source.IsLost(err):
		return false
	case errors.Is(err, source.ErrDecode), errors.Is(err, source.ErrNotAList), errors.Is(err, source.ErrWrongKind), errors.Is(err, source.ErrWrongScope), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax), errors.As(err, &mismatch),
		runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err):
		return true
	}
	text := err.Error()
	for _, words := range []string{"serializer for ", "serializers registered for ", "0-length response", "json parse error", "unexpected end of JSON", "unable to decode"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
