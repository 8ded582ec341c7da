package discovery

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/stub"
)

// opened opens a system on a server of its own, until the test ends.
func opened(t *testing.T, s system) (*mapper, stub.Client) {
	t.Helper()
	server := serve(t, 5)
	m, err := s.open(&rest.Config{Host: server.Host, QPS: -1})
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
	return m, server
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

func TestSystems_FindWhatIsServedAndWhatComes(t *testing.T) {
	for _, s := range systems() {
		t.Run(s.Name, func(t *testing.T) {
			m, server := opened(t, s)
			known, newcomer := stub.Definitions(5)[4].Types[0], stub.Newcomer(0).Types[0]
			mapping, err := m.RESTMapping(known.GVK.GroupKind(), known.GVK.Version)
			if err != nil || mapping.Resource != known.GVR {
				t.Errorf("%v is mapped to %v: %v", known.GVK, mapping, err)
			}
			if _, err := m.RESTMapping(newcomer.GVK.GroupKind(), newcomer.GVK.Version); !meta.IsNoMatchError(err) {
				t.Errorf("a type that is not served: %v", err)
			}
			if _, err := server.Create(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if s.Name == "client-go" {
				if _, err := m.RESTMapping(newcomer.GVK.GroupKind()); !meta.IsNoMatchError(err) {
					t.Errorf("before it forgets: %v", err)
				}
			}
			eventually(t, "the newcomer", func() bool {
				if m.forget != nil {
					m.forget()
				}
				mapping, err := m.RESTMapping(newcomer.GVK.GroupKind(), newcomer.GVK.Version)
				return err == nil && mapping.Resource == newcomer.GVR
			})
		})
	}
}

func TestGVRKit_SettlesAndAwaits(t *testing.T) {
	m, server := opened(t, systems()[2])
	eventually(t, "settled", m.settled)
	newcomer := stub.Newcomer(0).Types[0]
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { done <- m.await(ctx, newcomer.GVR) }()
	if _, err := server.Create(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := m.resolve(ctx, newcomer.Ref()); err != nil || got != newcomer.GVR {
		t.Errorf("%s is %v: %v", newcomer.Ref(), got, err)
	}
	if got, err := m.resolveGVK(ctx, newcomer.GVK); err != nil || got != newcomer.GVR {
		t.Errorf("%v is %v: %v", newcomer.GVK, got, err)
	}
}
