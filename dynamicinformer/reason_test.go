package dynamicinformer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gvrkit/gvrkit/discovery"
)

// What fakes can't say: they have no CRDs.
func TestClassify_WhatDiscoverySays(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want Reason
	}{
		{&discovery.NotEstablishedError{CRD: "widgets.example.com"}, ReasonNotEstablished},
		{&discovery.NotEstablishedError{CRD: "widgets.example.com", Condition: "Established"}, ReasonNotEstablished},
		{&discovery.NotEstablishedError{CRD: "widgets.example.com", Condition: "NamesAccepted"}, ReasonNamesNotAccepted},
		{&discovery.NotServedError{}, ReasonNotFound},
		{&discovery.NotServedError{Versions: []string{"v1"}}, ReasonVersionNotServed},
		{&discovery.InconclusiveError{Err: errors.New("down")}, ReasonDiscoveryFailed},
	} {
		if got := classify(fmt.Errorf("once more: %w", tc.err)); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.err, got, tc.want)
		}
	}
}
