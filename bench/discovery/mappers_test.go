package discovery

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/cluster"
)

// opened returns a mapper on a server. It runs until the end of the test.
func opened(t *testing.T, open func(*rest.Config) (*mapper, error), server cluster.Connection) *mapper {
	t.Helper()
	m, err := open(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	if m.run != nil {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := m.run(ctx); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() {
			cancel()
			running.Wait()
		})
	}
	return m
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(timeout); !ok(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatalf("%s: timeout after %v", what, timeout)
		}
	}
}

// findTypes checks that each system finds a known type and a new one.
func findTypes(t *testing.T, server cluster.Connection) {
	t.Helper()
	for i, open := range []func(*rest.Config) (*mapper, error){openClientGo, openControllerRuntime, openGVRKit} {
		t.Run(size{}.contestants()[i].Name, func(t *testing.T) {
			m := opened(t, open, server)
			known, new := newServed(cluster.Definitions(5)[4].Types[0]), additional(10+i)
			for way, ask := range map[string]func(context.Context, *served) error{
				"mapping": func(_ context.Context, of *served) error { return m.mapping(of) }, "kind": m.kind, "name": m.name,
				"resource": func(_ context.Context, of *served) error { return m.resource(of) },
			} {
				if err := ask(t.Context(), known); err != nil {
					t.Errorf("%s of a type that is served: %v", way, err)
				}
				if err := ask(t.Context(), new); err == nil {
					t.Errorf("%s of a type that is not served: no error", way)
				}
			}
			if err := m.mapping(new); !meta.IsNoMatchError(err) {
				t.Errorf("a type that is not served: %v", err)
			}
			if m.settled != nil {
				eventually(t, "settled", m.settled)
			}
			crd, err := server.TemporaryCRD(t.Context(), cluster.Additional(10+i), 500)
			if err != nil {
				t.Fatal(err)
			}
			defer crd.Stop()
			if _, err := crd.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			if m.await != nil {
				if err := m.await(t.Context(), new.GVR); err != nil {
					t.Error(err)
				}
			}
			eventually(t, "mapping of the new type", func() bool {
				if m.reset != nil {
					m.reset()
				}
				return m.mapping(new) == nil
			})
			if _, err := crd.Delete(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
