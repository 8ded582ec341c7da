package discovery_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/gvrkit/gvrkit/discovery"
)

// Answers that contradict one another, or that no API server gives, are none.

func TestInconclusive_JSONThatIsNoDiscoveryDocument(t *testing.T) {
	for name, body := range map[string]string{
		"a portal's":   `{"message":"please log in"}`,
		"null":         `null`,
		"a Status":     `{"kind":"Status","apiVersion":"v1","status":"Failure","code":503}`,
		"another kind": `{"kind":"PodList","apiVersion":"v1","items":[]}`,
		"no kind":      `{"groups":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, legacy, everything()...)
			s.answer("*", say("application/json", body))
			for question, err := range ask(t.Context(), s.resolver(t)) {
				if !errors.Is(err, discovery.ErrInconclusive) || errors.Is(err, discovery.ErrNotServed) {
					t.Errorf("%s: %v, want inconclusive", question, err)
				}
			}
		})
	}
}

func TestValidate_ListOfAnotherGroupVersionIsNoAnswer(t *testing.T) {
	s := newServer(t, legacy, everything()...)
	s.answer("/apis/example.com/v1", say("application/json",
		`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"other.com/v1","resources":[{"name":"widgets","kind":"Widget","verbs":["list","watch"]}]}`))
	_, err := s.resolver(t).Validate(t.Context(), widgets)
	checkInconclusive(t, err, "widgets.v1.example.com", nil)
}

// One of several API servers does not know the type yet; the next one does.
func TestValidate_404ThatTheRestContradictsIsInconclusive(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			first := true
			s.answer("/apis/example.com/v1", func(w http.ResponseWriter, r *http.Request) {
				if first {
					first = false
					http.NotFound(w, r)
					return
				}
				writeJSON(w, "application/json", versionDoc(exampleGroup, exampleGroup.versions[1]))
			})
			_, err := s.resolver(t).Validate(t.Context(), widgets)
			checkInconclusive(t, err, "widgets.v1.example.com", nil)
		})
	}
}

func TestValidate_404OfAStaleGroupVersionIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, stale(calicoGroup, "v3"))
	s.answer("/apis/projectcalico.org/v3", http.NotFound)
	_, err := s.resolver(t).Validate(t.Context(), calicoBlocks)
	checkInconclusive(t, err, "ipamblocks.v3.projectcalico.org", nil)
}

// A wrong address, or an ingress without a backend.
func TestValidate_404OfEverythingIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated)
	s.answer("*", http.NotFound)
	_, err := s.resolver(t).Validate(t.Context(), widgets)
	checkInconclusive(t, err, "widgets.v1.example.com", nil)
}

func TestResolve_CoreGroupVersionThatGoesMeanwhileIsInconclusive(t *testing.T) {
	s := newServer(t, legacy, everything()...)
	s.answer("/api/v1", http.NotFound)
	_, err := s.resolver(t).Resolve(t.Context(), "pods")
	checkInconclusive(t, err, "pods", nil)
}

// Where /api is not there, client-go drops what /apis says is stale.
func TestResolve_StaleGroupBesideNoCoreGroupIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated, exampleGroup, stale(calicoGroup, "v3"))
	s.answer("/api", http.NotFound)
	_, err := s.resolver(t).Resolve(t.Context(), "ipamblocks.projectcalico.org")
	checkInconclusive(t, err, "ipamblocks.projectcalico.org", nil)
}
