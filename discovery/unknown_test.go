package discovery_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

func TestResolver_WhatFailsIsAskedAFewTimes(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"500":  refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"401":  refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized),
		"HTML": say("text/html", "<html><body>Please log in</body></html>"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, aggregated, everything()...)
			r := s.resolver(t)
			s.answer("*", answer)
			for i := range 1000 {
				_, resolve := r.Resolve(t.Context(), fmt.Sprint("unicorns", i))
				_, validate := r.Validate(t.Context(), widgets)
				if !errors.Is(resolve, discovery.ErrInconclusive) || !errors.Is(validate, discovery.ErrInconclusive) {
					t.Fatalf("errors = %v, %v", resolve, validate)
				}
			}
			// Three paths; each twice, and then after pauses that grow to a second.
			if got := len(s.paths()); got > 60 {
				t.Errorf("2000 questions made %d requests", got)
			}
			s.answer("*", nil)
			eventually(t, "the server is asked again", func() bool {
				_, err := r.Validate(t.Context(), widgets)
				return err == nil
			})
		})
	}
}

func TestResolver_ManyAskTogetherAboutWhatFails(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := run(t, s, never())
	s.answer("*", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	s.paths()
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			if _, err := r.Resolve(t.Context(), fmt.Sprint("unicorns", i)); !errors.Is(err, discovery.ErrInconclusive) {
				t.Errorf("error = %v", err)
			}
		})
	}
	wg.Wait()
	if got := s.documents(); got > 40 {
		t.Errorf("500 questions made %d requests", got)
	}
}

func TestResolver_RequestsAboutUnknownNamesAreBounded(t *testing.T) {
	for name, ask := range map[string]func(r *discovery.Resolver, i int) error{
		"names": func(r *discovery.Resolver, i int) error {
			_, err := r.Resolve(t.Context(), fmt.Sprint("unicorns", i))
			return err
		},
		"a mapper's": func(r *discovery.Resolver, i int) error {
			_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.com", Kind: fmt.Sprint("Unicorn", i)})
			return err
		},
		"group versions": func(r *discovery.Resolver, i int) error {
			_, err := r.Validate(t.Context(), schema.GroupVersionResource{Group: fmt.Sprint("g", i), Version: "v1", Resource: "unicorns"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, aggregated, everything()...)
			r := run(t, s, never(), discovery.WithUnknownRate(100, 10))
			s.paths()
			begin := time.Now()
			for i := range 40 {
				if err := ask(r, i); !errors.Is(err, discovery.ErrNotServed) {
					t.Fatalf("error = %v", err)
				}
			}
			// Thirty of them had to wait for their turn.
			if took := time.Since(begin); took < 250*time.Millisecond {
				t.Errorf("40 questions took %v: their rate has no bound", took)
			}
			for range 1000 { // what is known needs no turn
				if _, err := r.Validate(t.Context(), widgets); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestResolver_UnknownNamesShareARequestThatWaitsForItsTurn(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := run(t, s, never(), discovery.WithUnknownRate(2, 1))
	if _, err := r.Resolve(t.Context(), "unicorns"); !errors.Is(err, discovery.ErrNotServed) {
		t.Fatal(err)
	}
	s.paths()
	var wg sync.WaitGroup
	for i := range 200 { // they have half a second to come
		wg.Go(func() {
			if _, err := r.Resolve(t.Context(), fmt.Sprint("unicorns", i)); !errors.Is(err, discovery.ErrNotServed) {
				t.Errorf("error = %v", err)
			}
		})
	}
	wg.Wait()
	if got := s.documents(); got > 3 {
		t.Errorf("200 questions made %d requests", got)
	}
}

func TestNotServedError_IsSafeToKeepAndToShare(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := s.resolver(t)
	_, err := r.Resolve(t.Context(), "widgzts")
	const want = "widgzts: not served by the API server; did you mean widgets.example.com?"
	var wg sync.WaitGroup
	for range 4 { // the race detector looks on
		wg.Go(func() {
			if got := err.Error(); got != want {
				t.Errorf("text = %q, want %q", got, want)
			}
		})
	}
	wg.Wait()
	absent := asType[*discovery.NotServedError](t, err, discovery.ErrNotServed)
	absent.Suggestions()[0] = discovery.Ref{Resource: "mine"}
	if diff := cmp.Diff([]discovery.Ref{{Resource: "widgets", Group: "example.com"}}, absent.Suggestions()); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
	_, again := r.Resolve(t.Context(), "widgzts")
	if errors.Is(again, err) || !errors.Is(err, err) { //nolint:gocritic // compared, they don't panic
		t.Error("two errors are one, or one is not itself")
	}
	if got := (&discovery.NotServedError{Ref: discovery.Ref{Resource: "mine"}}).Error(); got != "mine: not served by the API server; is its CustomResourceDefinition installed?" {
		t.Errorf("of a caller's own: %q", got)
	}
}
