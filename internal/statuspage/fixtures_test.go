package statuspage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/statuspage"
	"github.com/gvrkit/gvrkit/status"
)

// informers are a source that counts how often it is asked.
type informers struct {
	all   []status.Informer
	chain []status.Step
	asked atomic.Int32
	hold  chan struct{} // if not nil, answers wait for it

	elsewhere []schema.GroupVersionResource
	discovery *discovery.Status
}

func (s *informers) Status() []status.Informer {
	s.asked.Add(1)
	if s.hold != nil {
		<-s.hold
	}
	return append([]status.Informer(nil), s.all...)
}

func (s *informers) Explain(name string) (status.Explanation, bool) {
	s.asked.Add(1)
	e := status.Explanation{GVR: gvrOf(name), At: time.Now(), Chain: append([]status.Step(nil), s.chain...), Elsewhere: s.elsewhere, Discovery: s.discovery}
	for _, i := range s.all {
		if i.Name() == name {
			e.Informers = append(e.Informers, i)
		}
	}
	return e, len(e.Informers) > 0
}

// gvrOf returns a resource of that name.
func gvrOf(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Resource: name}
}

// informer is one that is as it should be.
func informer(name string, state status.State) status.Informer {
	return status.Informer{GVR: gvrOf(name), State: state}
}

// shownTable is a table as programs read it.
type shownTable struct {
	Summary                    statuspage.Summary
	Matching, Offset, NotShown int
	Informers                  []shownInformer
}

// shownInformer has the part of an informer's JSON that tests read.
type shownInformer struct {
	Name, State, Error       string
	Owners                   []status.Owner
	Handlers                 []status.Handler
	MoreOwners, MoreHandlers int
	Namespaces               []struct{ Name, Error string }
	MoreNamespaces           status.NamespaceCounts
	Shard                    *status.Shard
	Quarantine               struct{ Objects []struct{ Key, Error string } }
}

// many returns n informers, of which the last one is degraded.
func many(n int) []status.Informer {
	all := make([]status.Informer, n)
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
