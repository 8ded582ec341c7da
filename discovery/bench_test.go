package discovery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// unbounded lifts the bound of requests about unknown names.
var unbounded = discovery.WithUnknownRate(1e6, 1e6)

// The allocation budget of a question that is answered from memory.
func TestRun_KnownTypesAllocateAlmostNothing(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	r := run(t, s, never())
	ctx := t.Context()
	for name, ask := range map[string]func() error{
		"Resolve":    func() error { _, err := r.Resolve(ctx, "gadgets.v1.example.org"); return err },
		"ResolveGVR": func() error { _, err := r.ResolveGVR(ctx, gadgets); return err },
		"ResolveGVK": func() error { _, err := r.ResolveGVK(ctx, gadgets.GroupVersion().WithKind("Gadget")); return err },
		"RESTMapping": func() error {
			_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"}, "v1")
			return err
		},
	} {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(100, func() { _ = ask() }); got > 1 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// An unchanged document is not learned again, and suggestions are only computed on demand: the budget does
// not depend on the number of types. It includes the server's allocations.
func TestResolve_UnknownNamesCostTheSameWithManyTypes(t *testing.T) {
	s := crowdedServer(t, 500)
	running, i := run(t, s, never(), unbounded), 0
	for name, r := range map[string]*discovery.Resolver{"running": running, "not running": s.resolver(t)} {
		ask := func() {
			i++
			if _, err := r.Resolve(t.Context(), fmt.Sprintf("resource%dxs", i)); !errors.Is(err, discovery.ErrNotServed) {
				t.Fatal(err)
			}
		}
		ask()
		if got := testing.AllocsPerRun(50, ask); got > 450 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	groups := everything()
	groups = append(groups, group{name: "example.org", versions: []version{{name: "v1"}}})
	s := newServer(b, aggregated, groups...)
	s.collections(b, newCollection(define(gadgetsCRD, "1").object()), nil)
	r := run(b, s, never())
	ctx := b.Context()
	m := r.RESTMapper()
	for _, bench := range []struct {
		name string
		ask  func() error
	}{
		{"Resolve", func() error { _, err := r.Resolve(ctx, "gadgets.v1.example.org"); return err }},
		{"ResolveGVR", func() error { _, err := r.ResolveGVR(ctx, gadgets); return err }},
		{"RESTMapping", func() error {
			_, err := m.RESTMapping(schema.GroupKind{Group: "example.org", Kind: "Gadget"}, "v1")
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The cost of unknown names, one after the other, on a server with many CRDs, without the rate limit.
func BenchmarkResolve_UnknownNames(b *testing.B) {
	for _, crds := range []int{100, 1000} {
		r := run(b, crowdedServer(b, crds), never(), unbounded)
		for name, ask := range map[string]func(i int) error{
			"Resolve": func(i int) error {
				_, err := r.Resolve(b.Context(), fmt.Sprintf("resource%dxs", i))
				return err
			},
			"RESTMapping": func(i int) error {
				_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "group0.example.com", Kind: fmt.Sprintf("Resource%d", i)})
				return err
			},
			"ResolveGVR": func(i int) error {
				_, err := r.ResolveGVR(b.Context(), schema.GroupVersionResource{Group: "group0.example.com", Version: "v1", Resource: fmt.Sprintf("resource%dxs", i)})
				return err
			},
			"Resolve+text": func(i int) error {
				_, err := r.Resolve(b.Context(), fmt.Sprintf("resource%dys", i))
				_ = err.Error()
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/crds=%d", name, crds), func(b *testing.B) {
				b.ReportAllocs()
				requests, i := r.Status().Requests, 0
				for b.Loop() {
					i++
					if err := ask(i); !errors.Is(err, discovery.ErrNotServed) {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(r.Status().Requests-requests)/float64(i), "requests/op")
			})
		}
	}
}

// crowdedServer is a server with that many types, in groups of ten.
func crowdedServer(tb testing.TB, types int) *apiServer {
	tb.Helper()
	groups := []group{coreGroup, appsGroup}
	for i := range types / 10 {
		g := group{name: fmt.Sprintf("group%d.example.com", i), versions: []version{{name: "v1"}}}
		for j := range 10 {
			name := fmt.Sprintf("resource%dof%d", j, i)
			g.versions[0].resources = append(g.versions[0].resources, metav1.APIResource{
				Name: name + "s", SingularName: name, Kind: "R" + name[1:], ShortNames: []string{fmt.Sprintf("r%do%d", j, i)}, Namespaced: true, Verbs: all,
			})
		}
		groups = append(groups, g)
	}
	s := newServer(tb, aggregated, groups...)
	s.answer("/apis", unchanging(tb, aggregatedDoc(groups[1:])))
	return s
}

// unchanging serves a document that it has made once.
func unchanging(tb testing.TB, doc map[string]any) http.HandlerFunc {
	tb.Helper()
	body, err := json.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		const etag = `"1"`
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		_, _ = w.Write(body)
	}
}
