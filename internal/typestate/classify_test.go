package typestate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

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
