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

// opened opens a mapper on a server, until the test ends.
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

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); !ok(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not in %v", what, patience)
		}
	}
}

// findWhatIsServed lets each system find a type that is served, and one that comes.
func findWhatIsServed(t *testing.T, server cluster.Connection) {
	t.Helper()
	for i, open := range []func(*rest.Config) (*mapper, error){openClientGo, openControllerRuntime, openGVRKit} {
		t.Run(size{}.contestants()[i].Name, func(t *testing.T) {
			m := opened(t, open, server)
			known, new := newServed(cluster.Definitions(5)[4].Types[0]), newcomer(10+i)
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
			visitor, err := server.Visitor(t.Context(), cluster.Newcomer(10+i), 500)
			if err != nil {
				t.Fatal(err)
			}
			defer visitor.Stop()
			if _, err := visitor.Come(t.Context()); err != nil {
				t.Fatal(err)
			}
			if m.await != nil {
				if err := m.await(t.Context(), new.GVR); err != nil {
					t.Error(err)
				}
			}
			eventually(t, "the newcomer", func() bool {
				if m.forget != nil {
					m.forget()
				}
				return m.mapping(new) == nil
			})
			if _, err := visitor.Go(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
