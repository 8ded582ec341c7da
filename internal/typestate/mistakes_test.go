package typestate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// The reason for a mistake of the caller is not one of the server.
func TestClassify_TheCallersOwnMistakesLast(t *testing.T) {
	said := func(text string) error {
		return apierrors.NewGenericServerResponse(400, "get", schema.GroupResource{}, "", text, 0, true)
	}
	for _, test := range []struct {
		err  error
		want status.Reason
	}{
		{apierrors.NewBadRequest("field label not supported: spec.x"), status.ReasonBadRequest},
		{fmt.Errorf("%w: the client is nil", source.ErrInvalid), status.ReasonBadRequest},
		{said("no way"), status.ReasonBadRequest},
		{said("Client sent an HTTP request to an HTTPS server."), status.ReasonTLS},
		{apierrors.NewBadRequest("GET /api: 400 Client sent an HTTP request to an HTTPS server."), status.ReasonTLS},
		{&url.Error{Op: "Get", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, status.ReasonTLS},
		{x509.UnknownAuthorityError{}, status.ReasonTLS},
		{x509.HostnameError{Certificate: &x509.Certificate{}}, status.ReasonTLS},
		{x509.CertificateInvalidError{}, status.ReasonTLS},
		{tls.RecordHeaderError{}, status.ReasonTLS},
		{tls.AlertError(42), status.ReasonTLS},
		{&url.Error{Op: "Get", Err: &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}}, status.ReasonTLS},
		{&url.Error{Op: "Get", Err: http.ErrSchemeMismatch}, status.ReasonTLS},
		{&url.Error{Op: "Get", Err: errors.New("getting credentials: exec: executable aws failed with exit code 255")}, status.ReasonUnauthorized},
	} {
		got := Classify(test.err)
		if got != test.want || !got.Lasting() {
			t.Errorf("%T %v: %s, lasting %v; want %s", test.err, test.err, got, got.Lasting(), test.want)
		}
		if advice := (&status.NotSyncedError{Reason: got, Err: test.err, Verb: "list"}).Advice(); advice == "" {
			t.Errorf("%s: no advice", got)
		}
	}
	for _, err := range []error{
		errors.New("connection refused"), &net.OpError{Op: "dial", Err: errors.New("connection refused")},
		&url.Error{Op: "Get", Err: &net.OpError{Op: "remote error", Err: errors.New("tls: internal error")}}, apierrors.NewInternalError(errors.New("an HTTP request to an HTTPS server")),
	} {
		if got := Classify(err); got.Lasting() {
			t.Errorf("%v: %s", err, got)
		}
	}
}
