package typestate

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/source"
)

// transport answers each request with one status and body.
type transport struct {
	code int // zero: no answer; -1: the request hangs
	body string
}

func (s transport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch s.code {
	case -1:
		<-req.Context().Done()
		return nil, req.Context().Err()
	case 0:
		return nil, errors.New("connection refused")
	}
	return &http.Response{
		StatusCode: s.code, Request: req, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(s.body)),
	}, nil
}

// A list may be of another type than the known one. If the server can't say which CRD exists, the list is accepted.
// If it can, and the CRD is another one or gone, that is evidence, and no further request confirms it.
func TestState_Confirm(t *testing.T) {
	crd := func(uid string) string {
		return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"ships.fleet.example.com","uid":"` + uid + `"}}`
	}
	const (
		notFound = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"ships.fleet.example.com","group":"apiextensions.k8s.io","kind":"customresourcedefinitions"},"code":404}`
		unserved = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"the server could not find the requested resource","details":{},"code":404}`
	)
	for name, tc := range map[string]struct {
		server    transport
		known     discovery.Resource
		confirmed bool
		evidence  discovery.EvidenceKind
	}{
		"the same CRD":          {transport{200, crd("a")}, served("a"), true, ""},
		"another CRD":           {transport{200, crd("b")}, served("a"), false, discovery.CRDDeleted},
		"no CRD":                {transport{404, notFound}, served("a"), false, discovery.CRDDeleted},
		"no CRDs are served":    {transport{404, unserved}, served("a"), true, ""},
		"no API server":         {transport{404, "404 page not found"}, served("a"), true, ""},
		"forbidden":             {transport{403, "{}"}, served("a"), true, ""},
		"server error":          {transport{500, "{}"}, served("a"), true, ""},
		"no answer":             {transport{}, served("a"), true, ""},
		"no UID is known":       {transport{200, crd("b")}, served(""), true, ""},
		"another server has it": {transport{404, notFound}, by(discovery.BackingAggregated, "a"), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			resolver, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://ships.invalid"}, &http.Client{Transport: tc.server})
			if err != nil {
				t.Fatal(err)
			}
			s := New(ships, Config{Resolver: resolver, Changed: &broadcast.Broadcaster{}})
			yes(tc.known)(s)
			now, _ := s.Availability().Current()
			if got := s.Confirm(t.Context(), now); got != tc.confirmed {
				t.Errorf("confirmed = %t, want %t", got, tc.confirmed)
			}
			if got := s.Snapshot().Evidence.Kind; got != tc.evidence {
				t.Errorf("evidence = %q, want %q", got, tc.evidence)
			}
			if asks := len(s.news) == 1; asks == tc.confirmed {
				t.Errorf("discovery is asked again: %t, want %t", asks, !tc.confirmed)
			}
			if now.Serving != source.Served {
				t.Errorf("serving = %s before", now.Serving)
			}
		})
	}
}

// A connection that hangs does not stop an informer: the list is accepted after the timeout of the request.
func TestState_ConfirmEndsIfTheServerDoesNotRespond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolver, err := discovery.NewForConfigAndClient(&rest.Config{Host: "http://ships.invalid"}, &http.Client{Transport: transport{code: -1}})
		if err != nil {
			t.Fatal(err)
		}
		s := New(ships, Config{Resolver: resolver, Changed: &broadcast.Broadcaster{}})
		yes(served("a"))(s)
		now, _ := s.Availability().Current()
		begun := time.Now()
		if !s.Confirm(t.Context(), now) || s.Snapshot().Evidence.Kind != "" {
			t.Error("a request without a response is evidence")
		}
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("took %v, want the request timeout of the resolver", took)
		}
	})
}
