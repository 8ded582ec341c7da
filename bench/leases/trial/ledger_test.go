package trial

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

func object(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetName(name)
	return obj
}

func TestLedger_TellsSinceWhenThereAreAsMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, l := time.Now(), newLedger(2)
		steps := []func(){
			func() { l.OnAdd(object("a"), true) },
			func() { l.OnAdd(object("b"), false) },
			func() { l.OnAdd(object("b"), false) }, // is there already
			func() { l.OnUpdate(object("a"), object("a")) },
			func() { l.OnDelete(cache.DeletedFinalStateUnknown{Key: "a", Obj: object("a")}) },
			func() { l.OnDelete(object("c")) }, // was never there
			func() { l.OnDelete(object("b")) },
		}
		go func() {
			for _, step := range steps {
				<-time.After(time.Second)
				step()
			}
		}()
		for _, want := range []struct {
			objects int
			after   time.Duration
		}{{1, time.Second}, {2, 2 * time.Second}, {1, 5 * time.Second}, {0, 7 * time.Second}} {
			at, err := l.await(t.Context(), want.objects)
			if err != nil || at.Sub(begin) != want.after {
				t.Errorf("%d objects since %v, want %v: %v", want.objects, at.Sub(begin), want.after, err)
			}
		}
	})
}

func TestLedger_GivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newLedger(0).await(ctx, 1); err == nil {
		t.Error("there is an object")
	}
}
