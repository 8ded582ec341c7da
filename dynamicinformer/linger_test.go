package dynamicinformer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// The callback of a timer may run late, after the informer was acquired and released again, and another
// linger has begun.
func TestExpire_OfAnEarlierLingerHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		f, err := New(fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}))
		if err != nil {
			t.Fatal(err)
		}
		f.Start(t.Context())
		use := func() (*entry, *linger) {
			l, err := f.Acquire(t.Context(), widgets, WithLinger(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			l.Release()
			return l.entry, l.entry.lingering
		}
		e, first := use()
		again, second := use()
		if again != e {
			t.Fatal("the informer does not linger")
		}
		f.expire(e, first)
		if e.ending() {
			t.Error("the end of the first linger ends the second one")
		}
		f.expire(e, second)
		if !e.ending() {
			t.Error("the end of the second linger has no effect")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}
