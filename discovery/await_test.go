package discovery_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/discovery"
)

// awaited returns what Await of gadgets returns.
func awaited(ctx context.Context, r *discovery.Resolver) <-chan error {
	done := make(chan error, 1)
	go func() {
		got, err := r.Await(ctx, gadgets)
		if err == nil && got.GVR != gadgets {
			err = errors.New("it is " + got.GVR.String())
		}
		done <- err
	}()
	return done
}

func TestAwait_ReturnsWhenTheTypeComes(t *testing.T) {
	gadgetGroup := group{name: "example.org", versions: []version{{name: "v1", resources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Verbs: all}}}}}
	for name, tc := range map[string]struct {
		resolver func(*testing.T, *apiServer) *discovery.Resolver
		come     func(*apiServer, *collection)
	}{
		"told by a watch": {
			func(t *testing.T, s *apiServer) *discovery.Resolver { return run(t, s, never()) },
			func(_ *apiServer, crds *collection) { crds.put(define(gadgetsCRD, "1").object()) },
		},
		"not running": {
			func(t *testing.T, s *apiServer) *discovery.Resolver { return s.resolver(t, quick()) },
			func(s *apiServer, _ *collection) { s.serve(coreGroup, gadgetGroup) },
		},
		"by polling, more often": {
			func(t *testing.T, s *apiServer) *discovery.Resolver {
				s.answer(crdPath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
				return run(t, s, discovery.WithPace(5*time.Millisecond, time.Hour, time.Hour))
			},
			func(s *apiServer, _ *collection) { s.serve(coreGroup, gadgetGroup) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, crds := crdServer(t)
			r := tc.resolver(t, s)
			done := awaited(t.Context(), r)
			select {
			case err := <-done:
				t.Fatalf("before it has come: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
			tc.come(s, crds)
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("it does not return")
			}
		})
	}
}

func TestAwait_ReturnsAtOnceWhatIsServed(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	r := run(t, s, never())
	s.paths()
	if _, err := r.Await(t.Context(), gadgets); err != nil {
		t.Error(err)
	}
	if got := s.paths(); len(got) > 0 {
		t.Errorf("requests: %v", got)
	}
}

func TestAwait_SaysWhyNotAtTheEndOfItsContext(t *testing.T) {
	s, _ := crdServer(t)
	for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t, never())} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			done := awaited(ctx, r)
			time.AfterFunc(20*time.Millisecond, func() { cancel(enough) })
			if err := <-done; !errors.Is(err, enough) || !errors.Is(err, discovery.ErrNotServed) {
				t.Errorf("error = %v", err)
			}
		})
	}
}
