package dynamicinformer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// acquire returns a lease, or fails the test.
func acquire(t *testing.T, f *dynamicinformer.Factory, gvr schema.GroupVersionResource, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
	t.Helper()
	l, err := f.Acquire(t.Context(), gvr, opts...)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return l
}

// syncedLease starts f, and returns a lease on widgets whose informer has synced and is idle.
func syncedLease(t *testing.T, f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
	t.Helper()
	f.Start(t.Context())
	l := acquire(t, f, widgets, opts...)
	if err := l.WaitForSync(t.Context()); err != nil {
		t.Fatalf("WaitForSync: %v", err)
	}
	synctest.Wait()
	return l
}

// isDone reports whether Done of l is closed.
func isDone(l *dynamicinformer.Lease) bool {
	synctest.Wait()
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// bubble is a test of leases in a synctest bubble, with a started factory on a cluster with widgets and
// blocks.
type bubble struct {
	*testing.T
	cluster *fakecluster.Cluster
	factory *dynamicinformer.Factory
}

// inLeases runs a test in a bubble, and checks that no watch is open at the end.
func inLeases(t *testing.T, test func(in bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster)
		f.Start(t.Context())
		test(bubble{t, cluster, f})
		shutdown(t, f)
		for _, gvr := range []schema.GroupVersionResource{widgets, blocks} {
			if got := cluster.OpenWatches(gvr); got != 0 {
				t.Errorf("open watches of %s after Shutdown: %d", gvr.Resource, got)
			}
		}
	})
}

func TestLease_ViewRejectsChangesForOtherUsers(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, f := in.T, in.factory
		l := acquire(t, f, widgets)
		view := l.Informer()
		view.Run(nil) // returns at once
		view.RunWithContext(t.Context())
		for name, err := range map[string]error{
			"SetTransform":                    view.SetTransform(nil),
			"SetWatchErrorHandler":            view.SetWatchErrorHandler(nil),
			"SetWatchErrorHandlerWithContext": view.SetWatchErrorHandlerWithContext(nil),
		} {
			if err == nil {
				t.Errorf("%s is allowed", name)
			}
		}
		for _, handler := range []cache.ResourceEventHandler{
			nil, (*cache.ResourceEventHandlerFuncs)(nil), (*cache.ResourceEventHandlerDetailedFuncs)(nil), (*cache.FilteringResourceEventHandler)(nil),
		} {
			for _, informer := range []cache.SharedInformer{view, f.ForResource(blocks).Informer()} {
				if _, err := informer.AddEventHandler(handler); !errors.Is(err, dynamicinformer.ErrNilHandler) {
					t.Errorf("a nil %T: %v", handler, err)
				}
			}
		}
		l.Release()
		if _, err := view.AddEventHandler(&recorder{}); !errors.Is(err, dynamicinformer.ErrReleased) {
			t.Errorf("handler after Release: %v", err)
		}
		if err := l.WaitForSync(t.Context()); !errors.Is(err, dynamicinformer.ErrReleased) {
			t.Errorf("wait after Release: %v", err)
		}
		l.Retry()
		_ = l.Resource()
		if got := l.Status().State; got != status.StateStopped {
			t.Errorf("state after the last release: %s", got)
		}
		if _, err := l.Lister().ByNamespace("ns").Get("a"); !apierrors.IsNotFound(err) {
			t.Errorf("lister after Release: %v", err)
		}
	})
}

// The failure is known before the pause begins.
func TestLease_RetryBeforeThePauseBegins(t *testing.T) {
	for name, tc := range map[string]struct {
		verb string
		opts []dynamicinformer.LeaseOption
	}{
		"list":                {"list", []dynamicinformer.LeaseOption{dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever)}},
		"watch":               {"watch", nil},
		"list of namespaces":  {"list", []dynamicinformer.LeaseOption{dynamicinformer.WithNamespaces("one", "two")}},
		"watch of namespaces": {"watch", []dynamicinformer.LeaseOption{dynamicinformer.WithNamespaces("one", "two")}},
	} {
		t.Run(name, func(t *testing.T) {
			inLeases(t, func(in bubble) {
				t, cluster, f := in.T, in.cluster, in.factory
				cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					if req.Verb == tc.verb && (req.Namespace == "" || req.Namespace == "one") {
						return apierrors.NewInternalError(errors.New("down"))
					}
					return nil
				})
				begun := time.Now()
				var l atomic.Pointer[dynamicinformer.Lease]
				failures, done := 0, make(chan struct{})
				l.Store(acquire(t, f, widgets, append(tc.opts, dynamicinformer.WithWatchErrorHandler(func(context.Context, *cache.Reflector, error) {
					for l.Load() == nil {
						time.Sleep(time.Millisecond)
					}
					if failures++; failures == 1 {
						begun = time.Now()
					}
					if failures == 4 {
						cluster.Intercept(nil)
						close(done)
					}
					l.Load().Retry()
				}))...))
				select {
				case <-done:
				case <-time.After(time.Hour):
				}
				if err := l.Load().WaitForSync(briefly(t)); err != nil || failures != 4 || time.Since(begun) != 0 {
					t.Errorf("%v after %d failures, %v later", err, failures, time.Since(begun))
				}
			})
		})
	}
}

// A type that hangs does not affect other types.
func TestLease_StuckTypeDoesNotAffectOthers(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR == widgets {
				<-ctx.Done()
			}
			return nil
		})
		stuck := acquire(t, f, widgets)
		waiting := make(chan error)
		go func() { waiting <- stuck.WaitForSync(t.Context()) }()
		synctest.Wait()
		begun := time.Now()
		other := acquire(t, f, blocks)
		if err := other.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if err := f.WaitForSync(ctx, dynamicinformer.WithResources(widgets, blocks)); reasonOf(t, err) != status.ReasonSyncing {
			t.Errorf("wait for both types: %v", err)
		}
		if got := f.Status(); len(got) != 2 {
			t.Errorf("status: %v", got)
		}
		other.Release()
		stuck.Release()
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
		if got := reasonOf(t, <-waiting); got != status.ReasonStopped {
			t.Errorf("the wait returned %s, want Stopped", got)
		}
	})
}

func TestLease_HandlersMayCallAllMethods(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		l := acquire(t, f, widgets)
		done := make(chan struct{})
		_, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			defer close(done)
			other, err := f.Acquire(t.Context(), blocks)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := other.AddEventHandler(&recorder{}); err != nil {
				t.Error(err)
			}
			same, err := f.Acquire(t.Context(), widgets)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := same.AddEventHandler(&recorder{}); err != nil {
				t.Error(err)
			}
			if err := other.WaitForSync(t.Context()); err != nil {
				t.Error(err)
			}
			_ = f.Status()
			same.Release()
			other.Release()
			<-other.Done()
			<-same.Done()
			l.Retry()
			l.Release()
		}})
		if err != nil {
			t.Fatal(err)
		}
		create(t, cluster, widgets, "ns", "a")
		<-done
		if !isDone(l) {
			t.Error("the lease is not done")
		}
	})
}

func TestLease_ManyAtOnce(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		create(t, cluster, widgets, "ns", "a")
		var all sync.WaitGroup
		for g := range 100 {
			all.Go(func() {
				for i := range 100 {
					l, err := f.Acquire(t.Context(), widgets)
					if err != nil {
						t.Error(err)
						return
					}
					if (g+i)%10 == 0 {
						if _, err := l.AddEventHandler(&recorder{}); err != nil {
							t.Error(err)
						}
					}
					if got := f.Status(); len(got) > 1 {
						t.Errorf("%d informers at a time", len(got))
					}
					l.Release()
					<-l.Done()
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches: %d", got)
		}
		if got := f.Status(); len(got) != 0 {
			t.Errorf("informers: %v", got)
		}
	})
}
