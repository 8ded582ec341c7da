package dynamicinformer

import (
	"errors"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/source"
)

// settable is an informer that takes transforms as answer says.
type settable struct {
	cache.SharedIndexInformer
	answer func() error
}

func (s settable) SetTransform(cache.TransformFunc) error { return s.answer() }

func keep(object any) (any, error) { return object, nil }

// The informer may begin to list at the very moment that it has its transform.
func TestSharedInformer_KnowsOfATransformBeforeItIsThere(t *testing.T) {
	c := &choice{}
	known := false
	i := &informer{choice: c, SharedIndexInformer: settable{answer: func() error {
		known = c.transformed.Load()
		return nil
	}}, source: source.New(source.Config{})}
	if err := i.SetTransform(keep); err != nil || !known || !c.transformed.Load() {
		t.Errorf("known then %v, now %v, error %v", known, c.transformed.Load(), err)
	}
	if err := i.SetTransform(nil); err != nil || c.transformed.Load() {
		t.Errorf("without a transform: known %v, error %v", c.transformed.Load(), err)
	}
}

func TestSharedInformer_ARefusedTransformIsNone(t *testing.T) {
	errStarted := errors.New("informer has already started")
	for _, before := range []bool{false, true} {
		c := &choice{}
		c.transformed.Store(before)
		i := &informer{choice: c, SharedIndexInformer: settable{answer: func() error { return errStarted }}, source: source.New(source.Config{})}
		if err := i.SetTransform(keep); !errors.Is(err, errStarted) || c.transformed.Load() != before {
			t.Errorf("from %v to %v, error %v", before, c.transformed.Load(), err)
		}
	}
}

func TestDetectsMutations_AsClientGoDoes(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "true": true, "1": true} {
		t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", value)
		if got := detectsMutations(); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
