package typestate

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// client-go reports a lost connection as an event that can't be decoded.
func TestClassify_ALostConnectionIsNoErrorOfTheData(t *testing.T) {
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")
	for text, want := range map[string]status.Reason{
		"http2: client connection lost":                                 status.ReasonUnavailable,
		"stream error: stream ID 5; INTERNAL_ERROR; received from peer": status.ReasonUnavailable,
		"invalid character '<' looking for beginning of value":          status.ReasonDecodeFailed,
	} {
		err := apierrors.FromObject(reporter.AsObject(fmt.Errorf("unable to decode an event from the watch stream: %s", text)))
		if got := Classify(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

// Fakes have no CRDs, so these errors have a test of their own.
func TestClassify_ErrorsOfDiscovery(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want status.Reason
	}{
		{&discovery.NotEstablishedError{CRD: "widgets.example.com"}, status.ReasonNotEstablished},
		{&discovery.NotEstablishedError{CRD: "widgets.example.com", Condition: "Established"}, status.ReasonNotEstablished},
		{&discovery.NotEstablishedError{CRD: "widgets.example.com", Condition: "NamesAccepted"}, status.ReasonNamesNotAccepted},
		{&discovery.NotServedError{}, status.ReasonNotFound},
		{&discovery.NotServedError{Versions: []string{"v1"}}, status.ReasonVersionNotServed},
		{&discovery.InconclusiveError{Err: errors.New("down")}, status.ReasonDiscoveryFailed},
	} {
		if got := Classify(fmt.Errorf("wrapped: %w", tc.err)); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.err, got, tc.want)
		}
	}
}
