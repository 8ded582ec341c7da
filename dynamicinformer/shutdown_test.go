package dynamicinformer_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

func TestFactory_ShutdownWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster)
		f.ForResource(blocks)
		release := make(chan struct{})
		_, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { <-release },
		})
		if err != nil {
			t.Fatal(err)
		}
		start(ctx, f)

		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = f.Shutdown(short)
		var stuck *dynamicinformer.ShutdownError
		if !errors.As(err, &stuck) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Shutdown with a handler that blocks: %v", err)
		}
		if diff := cmp.Diff([]schema.GroupVersionResource{widgets}, stuck.Running); diff != "" {
			t.Errorf("stuck (-want +got):\n%s", diff)
		}
		close(release)
		shutdown(t, f)
	})
}

func TestFactory_ShutdownWithAnEndedContextAfterTheEndOfAllIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets)
		start(t.Context(), f)
		shutdown(t, f)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			if err := f.Shutdown(ended); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestShutdownError_WithoutInformersNamesWhatElseRuns(t *testing.T) {
	err := &dynamicinformer.ShutdownError{Err: context.Canceled}
	if want := "all informers have ended, discovery or the removal of an event handler has not: context canceled"; err.Error() != want {
		t.Error(err)
	}
}

// The end of Start's context and Shutdown have the same effect on the status.
func TestStatus_IsStoppedWhenTheContextOfStartEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f.Start(ctx)
		lease := acquire(t, f, widgets)
		release := make(chan struct{})
		if _, err := lease.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-release }}); err != nil {
			t.Fatal(err)
		}
		var last atomic.Value
		go func() {
			for now := range lease.Watch(t.Context()) {
				last.Store(now.State)
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait() // the handler has not returned
		if got := last.Load(); got != status.StateStopped {
			t.Errorf("the last state is %v, want %s", got, status.StateStopped)
		}
		close(release)
		shutdown(t, f)
	})
}

// The last failure of an informer that has ended does not go on: it has no duration and no next attempt.
func TestStatus_AStoppedInformerDoesNotFailAnyLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets) // fails before its first list
		f.ForResource(blocks)  // is not served
		answer(cluster, apierrors.NewForbidden(widgets.GroupResource(), "", nil))
		f.Start(t.Context())
		time.Sleep(time.Minute)
		if i := f.Status()[1]; i.Reason != status.ReasonForbidden || i.Since.IsZero() || i.NextRetry.IsZero() {
			t.Errorf("before: %+v", i)
		}
		shutdown(t, f)
		time.Sleep(time.Second)
		for _, i := range f.Status() {
			if text := i.Summary(time.Now()); text != "Stopped" || !i.Since.IsZero() || !i.NextRetry.IsZero() || i.Err == nil || i.Attempts == 0 {
				t.Errorf("%s: %+v", text, i)
			}
		}
		for _, gvr := range []schema.GroupVersionResource{widgets, blocks} {
			if text := f.Explain(gvr).String(); strings.Contains(text, " for ") {
				t.Errorf("an explanation with a duration: %s", text)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var why *status.NotSyncedError
		if err := f.WaitForSync(ended, dynamicinformer.WithResources(widgets)); !errors.As(err, &why) || why.Reason != status.ReasonStopped || !strings.Contains(err.Error(), " (Stopped, ") {
			t.Errorf("WaitForSync: %v", err)
		}
	})
}

func TestFactory_ShutdownEndsAHangingList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		cluster.Intercept(func(ctx context.Context, _ fakecluster.Request) error {
			<-ctx.Done()
			return ctx.Err()
		})
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		start(ctx, f)
		begun := time.Now()
		shutdown(t, f)
		if took := time.Since(begun); took > 0 {
			t.Errorf("Shutdown took %v while a request hung", took)
		}
	})
}

// With a client that ignores its context, the goroutine of the reflector's LIST continues after the end of
// client-go's informer.
func TestFactory_ShutdownWaitsForARequestInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		release := make(chan struct{})
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "watch" {
				return apierrors.NewBadRequest("no watch-list here")
			}
			<-release
			return nil
		})
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		start(ctx, f)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := f.Shutdown(short); err == nil {
			t.Error("Shutdown returned nil while a request was under way")
		}
		close(release)
		shutdown(t, f)
	})
}

func TestFactory_ClosedFactoryKeepsItsInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFactory(t, fakecluster.New(widgetType))
		informer := f.ForResource(widgets).Informer()
		start(t.Context(), f)
		shutdown(t, f)
		if f.ForResource(widgets).Informer() != informer {
			t.Error("ForResource returned a new informer, which can't run")
		}
	})
}

func TestFactory_ShutdownBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		shutdown(t, f)
		shutdown(t, f)
		start(ctx, f)
		f.DropIn().Start(ctx.Done())
		synctest.Wait()
		if got := len(cluster.Requests("watch", widgets)); got != 0 {
			t.Errorf("watches after Shutdown = %d, want 0", got)
		}
	})
}

// The factory owns the removal of handlers after a release, also for an informer that a user runs and that
// continues after the factory. The index function hangs while it holds the informer's lock; the time of a
// bubble does not pass while a goroutine waits for a lock.
func TestShutdown_WaitsForTheRemovalOfHandlers(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	create(t, cluster, widgets, "ns", "a")
	f := newFactory(t, cluster)
	informer := f.ForResource(widgets).Informer()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }()
	<-informer.HasSyncedChecker().Done()
	f.Start(t.Context())
	l := acquire(t, f, widgets)
	if _, err := l.AddEventHandler(&recorder{}); err != nil {
		t.Fatal(err)
	}
	<-time.After(50 * time.Millisecond) // until the factory waits for the lock
	hangs, goOn, indexed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		indexed <- informer.AddIndexers(cache.Indexers{"slow": func(any) ([]string, error) {
			close(hangs)
			<-goOn
			return nil, nil
		}})
	}()
	<-hangs
	l.Release()
	soon, enough := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer enough()
	if err := f.Shutdown(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown while a handler is being removed: %v", err)
	}
	close(goOn)
	if err := <-indexed; err != nil {
		t.Error(err)
	}
	shutdown(t, f)
	cancel()
	<-ended
}
