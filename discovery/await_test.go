package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
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

func TestAwait_ReturnsWhenTheTypeIsServed(t *testing.T) {
	gadgetGroup := group{name: "example.org", versions: []version{{name: "v1", resources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Verbs: all}}}}}
	byCRD := func(_ *apiServer, crds *collection) { crds.put(define(gadgetsCRD, "1").object()) }
	byDocument := func(s *apiServer, _ *collection) { s.serve(coreGroup, gadgetGroup) }
	for _, tc := range []struct {
		name      string
		runs      bool
		forbidden bool // to watch CRDs
		pace      discovery.Option
		come      func(*apiServer, *collection)
	}{
		{"told by a watch", true, false, never(), byCRD},
		{"not running", false, false, quick(), byDocument},
		{"by polling, more often", true, true, discovery.WithPace(5*time.Millisecond, time.Hour, time.Hour), byDocument},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, crds := crdServer(t)
			if tc.forbidden {
				s.answer(crdPath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
			}
			r := s.resolver(t, tc.pace)
			if tc.runs {
				r = run(t, s, tc.pace)
			}
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
			case <-time.After(time.Minute):
				t.Error("it does not return")
			}
		})
	}
}

func TestAwaitRef_ReturnsWhenTheNameHasAMeaning(t *testing.T) {
	for _, ref := range []string{"gadgets", "Gadget", "gadgets.example", "gadgets.v1.example.org", "example.org/v1, Kind=Gadget"} {
		for _, runs := range []bool{true, false} {
			t.Run(fmt.Sprint(ref, " ", runs), func(t *testing.T) {
				s, crds := crdServer(t)
				r, come := s.resolver(t, quick()), func() {
					s.serve(coreGroup, group{name: "example.org", versions: []version{{name: "v1", resources: []metav1.APIResource{{Name: "gadgets", Kind: "Gadget", Verbs: all}}}}})
				}
				if runs {
					r, come = run(t, s, never()), func() { crds.put(define(gadgetsCRD, "1").object()) }
				}
				done := make(chan error, 1)
				go func() {
					res, err := r.AwaitRef(t.Context(), ref)
					if err == nil && res.GVR != gadgets {
						err = errors.New("it is " + res.GVR.String())
					}
					done <- err
				}()
				select {
				case err := <-done:
					t.Fatalf("before it has come: %v", err)
				case <-time.After(20 * time.Millisecond):
				}
				come()
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Error("it does not return")
				}
			})
		}
	}
}

// A name that has no meaning, or several, is an error at once. Any other one is, when the context ends.
func TestAwaitRef_Errors(t *testing.T) {
	for _, runs := range []bool{true, false} {
		t.Run(fmt.Sprintf("runs=%v", runs), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				w.update(func() {
					w.setCRD(gadget("v1"))
					other := gadget("v1")
					other.name, other.uid, other.group = "gadgets.example.com", "2", "example.com"
					w.setCRD(other)
				})
				if runs {
					runFor(t, r)
				}
				sleep(time.Minute)
				for ref, want := range map[string]error{"gadgets": discovery.ErrAmbiguous, "pods/log/of/what": discovery.ErrInvalidRef, "Missing": discovery.ErrNotServed} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					_, err := r.AwaitRef(ctx, ref)
					checkKind(t, err, want)
					if waited := ctx.Err() != nil; waited != errors.Is(want, discovery.ErrNotServed) || errors.Is(err, context.DeadlineExceeded) != waited {
						t.Errorf("%s: waited: %v, error %v", ref, waited, err)
					}
				}
			})
		})
	}
}

func TestAwait_ReturnsAServedTypeAtOnce(t *testing.T) {
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

// A resolver does not keep the names of all types for which callers have waited.
func TestAwait_TypesWithoutCallersAreForgotten(t *testing.T) {
	for _, runs := range []bool{true, false} {
		t.Run(fmt.Sprintf("runs=%v", runs), func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *memoryServer, r *discovery.Resolver) {
				t.Helper()
				if runs {
					runFor(t, r)
				}
				defer typefacts.Of(r).Expect(widgets.GroupResource())()
				for i := range 20 {
					stop := typefacts.Of(r).Expect(example(fmt.Sprintf("type%d", i)).GroupResource())
					sleep(time.Second)
					stop()
				}
				sleep(time.Minute)
				defer typefacts.Of(r).Expect(gadgets.GroupResource())()
				if got := discovery.Wanted(r); got != 2 {
					t.Errorf("%d types are stored, want the 2 with callers", got)
				}
			})
		})
	}
}

func TestAwait_ErrorHasTheLastAnswerAndTheCause(t *testing.T) {
	s, _ := crdServer(t)
	for name, r := range map[string]*discovery.Resolver{"running": run(t, s, never()), "not running": s.resolver(t, never())} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			done := awaited(ctx, r)
			for name != "running" && r.Status().Answers.NotServed == 0 {
				<-time.After(time.Millisecond) // the first answer
			}
			time.AfterFunc(20*time.Millisecond, func() { cancel(enough) })
			if err := <-done; !errors.Is(err, enough) || !errors.Is(err, discovery.ErrNotServed) {
				t.Errorf("error = %v", err)
			}
		})
	}
}

// The last answer is that of the server, also if the context ends during the next request.
func TestAwait_ErrorHasTheLastAnswerDuringARequest(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		done := awaited(ctx, r)
		sleep(time.Second)
		w.update(func() { w.fault["version"] = "hang" })
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, discovery.ErrNotServed) {
			t.Errorf("error = %v", err)
		}
	})
}
