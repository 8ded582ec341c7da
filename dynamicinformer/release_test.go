package dynamicinformer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestRelease_EndsAHangingListAtOnce(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		under := 0
		cluster.Intercept(func(ctx context.Context, _ fakecluster.Request) error {
			under++
			<-ctx.Done()
			under--
			return ctx.Err()
		})
		l := acquire(t, f, widgets)
		time.Sleep(time.Second)
		begun := time.Now()
		l.Release()
		synctest.Wait()
		if took := time.Since(begun); took != 0 || under != 0 || !isDone(l) {
			t.Errorf("after %v requests in progress = %d, done = %v", took, under, isDone(l))
		}
	})
}

func TestRelease_InAHandlerOfTheLease(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		for _, others := range []bool{false, true} {
			l := acquire(t, f, widgets)
			if others {
				acquire(t, f, widgets)
			}
			called, goOn := 0, make(chan struct{})
			_, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				called++
				l.Release()
				<-goOn
			}})
			if err != nil {
				t.Fatal(err)
			}
			create(t, cluster, widgets, "ns", fmt.Sprint("a", others))
			create(t, cluster, widgets, "ns", fmt.Sprint("b", others))
			if isDone(l) {
				t.Error("done while its handler runs")
			}
			close(goOn)
			if !isDone(l) || called != 1 {
				t.Errorf("done = %v after %d calls, want 1", isDone(l), called)
			}
		}
	})
}

// The handler may be called, and release, before it is known to have been added.
func TestRelease_WhileAHandlerIsAdded(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		create(t, cluster, widgets, "ns", "a")
		first := acquire(t, f, widgets)
		if err := first.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 300 {
			l := acquire(t, f, widgets)
			registration, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { l.Release() }})
			if err != nil || registration == nil {
				t.Fatalf("%v, %v", registration, err)
			}
			if !isDone(l) {
				t.Fatal("the lease is not done")
			}
		}
		if got := len(first.Status().Handlers); got != 0 {
			t.Errorf("%d handlers are left", got)
		}
	})
}

// A program can wait for the end of a handler after the release, also if the informer never ran or its type
// is not served.
func TestRelease_EndsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for _, started := range []bool{false, true} {
			f := newFactory(t, cluster, withDiscovery(t, cluster))
			if started {
				f.Start(t.Context())
			}
			for i, gvr := range []schema.GroupVersionResource{widgets, gadgets, widgets, gadgets} {
				opts := []dynamicinformer.LeaseOption{dynamicinformer.WithAllowAbsent()}
				if i > 1 {
					opts = append(opts, dynamicinformer.WithCoalescing(0))
				}
				l := acquire(t, f, gvr, opts...)
				registration, err := l.AddEventHandler(&recorder{})
				if err != nil {
					t.Fatal(err)
				}
				l.Release()
				ended := make(chan error)
				go func() { ended <- cache.ShutDownEventHandler(l.Informer(), registration) }()
				select {
				case err := <-ended:
					if err != nil {
						t.Errorf("%s, started %v: %v", gvr.Resource, started, err)
					}
				case <-time.After(time.Hour):
					t.Fatalf("%s, started %v: it is still waited for", gvr.Resource, started)
				}
			}
			shutdown(t, f)
		}
	})
}

func TestRelease_RemovesOnlyItsOwnHandlers(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		a, b := acquire(t, f, widgets), acquire(t, f, widgets)
		ofA, ofB, viaView := &recorder{}, &recorder{}, &recorder{}
		registration, err := b.AddEventHandler(ofB)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.AddEventHandler(ofA); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Informer().AddEventHandlerWithResyncPeriod(viaView, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := a.RemoveEventHandler(registration); err != nil { // registered by another lease
			t.Error(err)
		}
		create(t, cluster, widgets, "ns", "one")
		synctest.Wait()
		a.Release()
		create(t, cluster, widgets, "ns", "two")
		synctest.Wait()
		for name, got := range map[string][]string{"a": ofA.take(), "a's view": viaView.take()} {
			if diff := cmp.Diff([]string{"add ns/one"}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff([]string{"add ns/one", "add ns/two"}, ofB.take()); diff != "" {
			t.Errorf("b (-want +got):\n%s", diff)
		}
		if err := b.RemoveEventHandler(registration); err != nil {
			t.Error(err)
		}
		create(t, cluster, widgets, "ns", "three")
		synctest.Wait()
		if got := ofB.take(); got != nil {
			t.Errorf("a removed handler got %q", got)
		}
		if isDone(b) {
			t.Error("the lease is done without a release")
		}
	})
}
