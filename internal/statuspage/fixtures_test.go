package statuspage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gvrkit/gvrkit/internal/statuspage"
)

// informers are a source that counts how often it is asked.
type informers struct {
	all   []statuspage.Informer
	chain []statuspage.Step
	asked atomic.Int32
	hold  chan struct{} // if not nil, answers wait for it

	discovery *statuspage.Discovery
}

func (s *informers) Informers() []statuspage.Informer {
	s.asked.Add(1)
	if s.hold != nil {
		<-s.hold
	}
	return append([]statuspage.Informer(nil), s.all...)
}

func (s *informers) Detail(name string) (statuspage.Detail, bool) {
	s.asked.Add(1)
	d := statuspage.Detail{Name: name, At: time.Now(), Informers: []statuspage.Informer{}, Chain: append([]statuspage.Step(nil), s.chain...), Discovery: s.discovery}
	for _, i := range s.all {
		if i.Name == name {
			d.Informers = append(d.Informers, i)
		}
	}
	return d, len(d.Informers) > 0
}

// informer is one that is as it should be.
func informer(name, state string) statuspage.Informer {
	return statuspage.Informer{Name: name, Resource: name, State: state}
}

// many returns n informers, of which the last one is degraded.
func many(n int) []statuspage.Informer {
	all := make([]statuspage.Informer, n)
	for i := range all {
		all[i] = informer(fmt.Sprintf("type%05d.v1.example.com", i), "Synced")
	}
	all[n-1].State = "Degraded"
	return all
}

// get asks handler for target as one that accepts what accept says.
func get(t *testing.T, handler http.Handler, target, accept string) *httptest.ResponseRecorder {
	t.Helper()
	return do(t, handler, http.MethodGet, target, accept)
}

func do(t *testing.T, handler http.Handler, method, target, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}
